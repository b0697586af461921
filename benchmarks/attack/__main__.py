"""x"""
import sys, time, importlib
t=time.time()
importlib.import_module("benchmarks.attack."+sys.argv[1]).attack(quick=len(sys.argv)>2)
print(time.time()-t)
