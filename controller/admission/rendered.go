package admission

import (
	"maps"
	"slices"
	"strings"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// sameTrainer is same for a job's trainer, but ignores Kueue's rendering of it. Kueue 0.19 renders the very job that it
// sends back, with the code of Trainer 2.2, which leaves the commands of two frameworks in it: torchtune's recipe
// behind the command, and Flux's entrypoint before it, once or twice. Its meaning is that of the user's trainer.
func sameTrainer(old, next any) bool {
	return same[trainerv1alpha1.Trainer](old, next) || same[trainerv1alpha1.Trainer](old, asWritten(old, next))
}

// asWritten returns next with old's command and arguments, if next's are those that Trainer 2.2 renders of them.
func asWritten(old, next any) any {
	had, _ := old.(map[string]any)
	sent, isObject := next.(map[string]any)
	if !isObject {
		return next
	}
	was, is := words(had["command"]), words(sent["command"])
	var undone []string
	switch {
	case slices.Equal(was, []string{"tune", "run"}) && len(is) > len(was) && slices.Equal(is[:len(was)], was):
		undone = []string{"command"}
	case len(is) == 3 && slices.Equal(is[:2], []string{"/bin/bash", "/etc/flux-config/entrypoint.sh"}) &&
		len(words(sent["args"])) == 0 &&
		strings.HasSuffix(is[2], strings.TrimSpace(strings.Join(append(was, words(had["args"])...), " "))):
		undone = []string{"command", "args"}
	}
	written := maps.Clone(sent)
	for _, key := range undone {
		delete(written, key)
		if value, there := had[key]; there {
			written[key] = value
		}
	}
	return written
}

// words are the texts of a list; nothing else is in one that decodes as a TrainJob's.
func words(list any) []string {
	items, _ := list.([]any)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		text, _ := item.(string)
		texts = append(texts, text)
	}
	return texts
}
