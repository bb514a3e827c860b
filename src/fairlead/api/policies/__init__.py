"""Routes of policies. They read a policy, call its use case and render the answer; they decide nothing."""
