"""What policies can say: the rules that fit a field, and the spec of NIM services, which only policies know.

Used by `formats` and `admission`. Which rules fit follows from the declaration of the field.
"""
