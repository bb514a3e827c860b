"""What an account may do now, from the records of the directory.

Called for the account of a token, for the owner of a notification rule, and for an account that somebody changes.
"""

from fairlead.control.directory import Directory
from fairlead.control.people.callers import build_caller
from fairlead.model.records.people import Caller, User


def find_caller(directory: Directory, user: User) -> Caller:
    """The account as a caller, with the rights that it has now."""
    departments = directory.departments if len(directory.clusters) > 1 else None
    # A rule for a cluster that was removed must not count for the only one that is left.
    rules = [
        rule for rule in directory.rules_of(user) if rule.scope.type != "cluster" or rule.scope.id in directory.clusters
    ]
    return build_caller(user, rules, directory.roles, directory.projects, departments)
