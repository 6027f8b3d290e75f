// Package sizing computes the memory that a training needs on each device, and the nodes x devices of a fleet that have
// it. All of it is functions of values: a fleet's offers and a job's requests are read elsewhere.
//
// The formulae, their sources and their errors against published figures are in docs/auto-resources.md.
package sizing
