"""Sections: each part of the configuration, its settings with type, bounds, default and purpose.

Offers one class per section; `settings.py` combines them. It must not read files or the
environment.
"""
