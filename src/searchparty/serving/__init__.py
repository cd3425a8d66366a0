"""A team behind HTTP: the same `play` as in evaluation, asked by OpenAI clients or in the native form."""
