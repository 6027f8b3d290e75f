// Package config holds the options of the controller: their meaning, their defaults, and their validation.
package config
