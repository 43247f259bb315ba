"""Random pipelines over random state schemas, as source text that users could have written.

`parts` is what they are made of, `fields` what their schemas declare, `functions` and `leaves`
write single steps, and `programs` whole pipelines. Whoever writes one tracks which fields have a
value, so that most can be proven; some reads are made without looking. Tokens in the text stand for
what a mutation leaves out or changes.
"""
