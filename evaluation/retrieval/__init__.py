"""Are the lessons that fit found, and is nothing found where none fits?"""
