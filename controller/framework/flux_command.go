package framework

import "strings"

// fluxCommand returns the command of the tasks, as one line of shell; empty if there is none, and then Flux waits for
// one.
//
// The runtime's arguments belong to the runtime's command: a job that has its own of either does without them.
func fluxCommand(input Input) string {
	command, args := input.Command, input.RuntimeArgs
	if input.JobCommand != nil {
		command, args = input.JobCommand, nil
	}
	if input.Args != nil {
		args = input.Args
	}
	words := make([]string, 0, len(command)+len(args))
	for _, list := range [][]string{command, args} {
		for _, word := range list {
			words = append(words, shellWord(word))
		}
	}
	return strings.Join(words, " ")
}

// shellWord returns a word that bash reads back as the given one. One without a meaning to bash is unchanged.
func shellWord(word string) string {
	if plain(word, "_@%+=:,./-") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plain reports whether a word is some letters, digits and signs.
func plain(word, signs string) bool {
	return word != "" &&
		strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+signs) == ""
}
