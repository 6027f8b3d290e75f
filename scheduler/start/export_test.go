package start

// LeastStart is how long a gang takes at least.
var LeastStart = leastStart
