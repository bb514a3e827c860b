"""Small rules of English for generated texts. Used by the API description and by the help of the command line."""


def with_article(noun: str) -> str:
    """`a training`, `an inference`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
