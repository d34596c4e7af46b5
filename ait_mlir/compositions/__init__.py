"""Everything that is more than one op, one file for each family: functions of a `Writer` and of values.

Front ends map their arguments to these functions and refuse what they do not take.
"""
