// Package trace reads published traces as values. A row that cannot be used is bad input (badinput), with its file and
// line; rows are taken as they stand, and what is made of them is for others to decide.
package trace
