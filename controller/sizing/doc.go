// Package sizing computes how much memory a training needs on each device, and which nodes x devices of a fleet have it. All of it
// is functions of values: what a fleet offers, and what a job asks for, is read elsewhere.
//
// The formulae, their sources and their errors against published figures are in docs/auto-resources.md.
package sizing
