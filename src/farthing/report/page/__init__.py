"""The page that the report and the live page share: one HTML file, one style sheet, one script."""
