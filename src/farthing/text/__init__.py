"""Text that is shown or stored: any object as plain text, text of strangers without control codes, cards of HTML."""
