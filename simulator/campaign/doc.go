// Package campaign plays the committed list of contests, and writes what came of them as one document: which fleet, which trace,
// which seeds, who was compared, and how to have the numbers again. A campaign that was interrupted goes on where it was.
package campaign
