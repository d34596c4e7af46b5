"""Operations that are more than one op, one file for each family: functions of a `Writer` and of values.

Front ends map their arguments to these functions and refuse what they do not take.
"""
