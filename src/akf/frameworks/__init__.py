"""The arms: what each framework is, where it runs, and what its operators are today."""
