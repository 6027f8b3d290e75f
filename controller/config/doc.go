// Package config holds the options of the controller: what they mean, what they are by default, and which are refused.
package config
