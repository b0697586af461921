"""Programs that train what the wheel carries; they are not in the wheel."""
