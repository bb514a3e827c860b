"""Which passwords people may choose. Pure.

Length is what makes a password strong; of the long ones, only those are refused that everybody tries first.
"""

import re
import string

MIN_LENGTH = 12
#: Longer ones are not common.
_LONGEST_COMMON = 64
_MIN_DIFFERENT_CHARACTERS = 5
#: The usual replacements of letters.
_LEET = str.maketrans("@4301!$5+7", "aaeoiisstt")
_NO_LETTERS = string.digits + string.punctuation + " "
#: Words from which the most used passwords are made, by adding digits and signs or by repeating them.
_COMMON = (
    *("password", "passwort", "passw", "pass", "secret", "login", "letmein", "welcome", "changeme", "access"),
    *("default", "admin", "administrator", "root", "user", "guest", "test", "demo", "master", "fairlead", "runai"),
    *("nvidia", "qwerty", "qwertz", "qwertyuiop", "qwertzuiop", "asdf", "asdfgh", "asdfghjkl", "zxcvbn", "zxcvbnm"),
    *("qazwsx", "qazwsxedc", "abc", "abcd", "abcdef", "abcdefgh", "iloveyou", "ilove", "you", "monkey", "dragon"),
    *("football", "baseball", "sunshine", "princess", "shadow", "superman", "batman", "trustno", "hello", "summer"),
    *("winter", "spring", "autumn", "january", "monday", "computer", "internet", "server", "company", "my", "the"),
    *("correct", "horse", "battery", "staple", "please"),
)
#: Possessive: it never tries another division into words, so it takes no longer than the text.
_MADE_OF_COMMON = re.compile(f"(?:{'|'.join(sorted(_COMMON, key=len, reverse=True))})*+")
_ROWS = (
    string.digits * 7,
    string.ascii_lowercase,
    "qwertyuiopasdfghjklzxcvbnm",
    "1q2w3e4r5t6y7u8i9o0p",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
)


def find_weakness(password: str, name: str) -> str:
    """What is wrong with a password for the account of that name; empty if nothing is."""
    if len(password) < MIN_LENGTH:
        return f"is shorter than {MIN_LENGTH} characters"
    text = password.lower()
    whole = name.lower()
    if any(len(own) > 3 and own in text for own in (whole, whole.partition("@")[0])):
        return "contains the name of the account"
    if len(set(text)) < _MIN_DIFFERENT_CHARACTERS:
        return f"has fewer than {_MIN_DIFFERENT_CHARACTERS} different characters"
    if len(text) <= _LONGEST_COMMON and _is_common(text):
        return "is one of the passwords that are tried first; use more than common words, rows of keys and digits"
    return ""


def _is_common(text: str) -> bool:
    """Whether it is a row of keys, or nothing but common words and signs, also with the usual replacements."""
    if any(text in row or text in row[::-1] for row in _ROWS):
        return True
    spellings = (text, text.translate(_LEET), text.strip(_NO_LETTERS).translate(_LEET))
    return any(_MADE_OF_COMMON.fullmatch(re.sub("[^a-z]", "", spelling)) for spelling in spellings)
