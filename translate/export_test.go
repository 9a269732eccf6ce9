package translate

// Kinds are how many kinds of errors there are.
const Kinds = Kind(len(kinds))
