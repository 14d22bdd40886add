"""Pure decisions, named as nouns: values in, values out."""
