// Package docs holds the pages of docs/ and the README to the code: outputs of commands, generated references,
// quotations, links and names.
package docs
