package contentiontest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// Script builds a scene from commands, and plays it on the machine alone. The zero Script is ready.
//
//	fleet cliques=1 nodes=18 gpus=8     a fleet of whole cliques
//	policy heads=8 budget=1h …          other numbers than the defaults
//	job NAME at=10:00 nodes=4 …         a gang that arrives: nodes= whole nodes, or members= and gpus=. runs= is its run time (none: it
//	                                    does not end); deadline=, reported= or predicted= set its known end, service= that it never
//	                                    ends; priority= preemptible never min= shrinks require= grace= cpus=, daemon pods start on=; sweep=
//	                                    names the set of trials to which it belongs, limit= bounds those that run
//	job NAME on=n1-n4 at=08:00 …        one that runs since then
//	fill PREFIX on=n1-n64 gpus=1 …      as many such jobs as the nodes hold; runs=30m..60m draws
//	stream PREFIX count=9 over=48h … as many jobs as that, evenly over the time from at= on; they give up at leaves=
//	event KIND JOB|NODES at=10:05       fail return cordon suspend resume restore finish extend lose ask hold revoke
//	                                    stall progress bound fail-over
//	play until=12:00                    play on, and print the events; quiet prints nothing, only=PREFIX lines of these jobs
//	show   queue   leases               the fleet; the waiting jobs; the leases
//	use reset | use                     the part of all GPUs that was in use since the last reset, in per cent
//	waits PREFIX                        the numbers of started and waiting jobs, and the mean wait
//	idled                               the part of all GPUs that leases have idled since the beginning
//	turns                               the number of evaluations since the last time
type Script struct {
	scene  Scene
	policy *contention.Policy
	player *Player
	// printed is the number of printed lines of the log.
	printed int
	// counted is the number of printed evaluations.
	counted int
	draw    uint64
	// until is the last instant until which a command seen by Build plays.
	until int64
}

// Arg is one argument of a command: a word, or a key with a value.
type Arg struct{ Key, Value string }

// ErrScript is the cause of all errors about scripts.
var ErrScript = errors.New("script")

// Do runs one command and returns its output.
func (s *Script) Do(command string, args []Arg) (string, error) {
	commands := map[string]func(arguments) (string, error){
		"fleet":  s.fleet,
		"policy": s.setPolicy,
		"job":    s.job,
		"fill":   s.fill,
		"stream": s.stream,
		"event":  s.event,
		"play":   s.play,
		"show":   s.show,
		"queue":  s.queue,
		"leases": s.leases,
		"use":    s.use,
		"waits":  s.waits,
		"turns":  s.turns,
		"idled":  s.idled,
	}
	run, ok := commands[command]
	if !ok {
		return "", fmt.Errorf("%w: unknown command %s", ErrScript, command)
	}
	out, err := run(argumentsOf(args))
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	if out == "" {
		out = "ok\n"
	}
	return out, nil
}

// Build runs a command that describes the scene, as Do does. Of a command that plays it notes the last instant; it
// skips all others.
func (s *Script) Build(command string, args []Arg) error {
	switch command {
	case "fleet", "policy", "job", "fill", "stream", "event":
		_, err := s.Do(command, args)
		return err
	case "play":
		a := argumentsOf(args)
		s.until = max(s.until, a.instant("until"))
		return a.err
	}
	return nil
}

// Scene returns the scene that the commands have built so far.
func (s *Script) Scene() Scene { return s.scene }

// Policy returns the numbers that the script wants, nil for the defaults.
func (s *Script) Policy() *contention.Policy { return s.policy }

// Until returns the instant until which the script plays, as far as Build was called.
func (s *Script) Until() int64 { return s.until }

// begun returns the player, which is made when the scene begins.
func (s *Script) begun() (*Player, error) {
	if s.player != nil {
		return s.player, nil
	}
	policy := contention.DefaultPolicy()
	if s.policy != nil {
		policy = *s.policy
	}
	var err error
	s.player, err = NewPlayer(s.scene, policy)
	return s.player, err
}

// gpusOfANode is the number of GPUs of a node unless a script says otherwise.
const gpusOfANode = 8

func (s *Script) fleet(a arguments) (string, error) {
	*s = Script{scene: Scene{
		Cliques: a.number(
			"cliques",
			1,
		),
		Nodes: a.number("nodes", 1),
		GPUs:  a.number("gpus", gpusOfANode),
		CPUs:  a.number("cpus", 0),
	}}
	return "", a.err
}

func (s *Script) setPolicy(a arguments) (string, error) {
	p := contention.DefaultPolicy()
	if a.has("backfill") {
		p.Discipline = contention.Backfill()
	}
	p.MaxLeases = a.number("heads", p.MaxLeases)
	p.Budget = a.duration("budget", p.Budget)
	p.Horizon = a.duration("horizon", p.Horizon)
	p.CeilingPart = int64(a.number("ceiling", int(p.CeilingPart)))
	p.Strict = a.has("strict")
	p.Preemption = !a.has("no-preemption")
	if a.has("unpriced") {
		p.Terms = contention.UnpricedTerms()
	}
	s.policy = &p
	return "", a.err
}

// read reads the arguments that all jobs have.
func (s *Script) read(a arguments) Job {
	j := Job{
		Elastic: a.has(
			"shrinks",
		),
		Arrives:       a.instant("at"),
		Members:       a.number("members", 1),
		GPUs:          a.number("gpus", s.scene.GPUs),
		Min:           a.number("min", 0),
		Require:       a.values["require"],
		Priority:      int32(a.number("priority", 0)),
		Runs:          contention.None,
		Preemptible:   a.has("preemptible"),
		NeverPreempts: a.has("never"),
		Grace:         a.duration("grace", 0),
		Saves:         a.duration("saves", 0),
		CPUs:          a.number("cpus", 0),
		Daemon:        a.has("daemon"),
		Sweep:         a.values["sweep"],
		Limit:         a.number("limit", 0),
	}
	if a.has("nodes") {
		j.Members, j.GPUs = a.number("nodes", 1), s.scene.GPUs
	}
	if a.has("runs") {
		j.Runs = s.drawn(&a, "runs")
	}
	for key, certainty := range map[string]contention.Certainty{
		"deadline": contention.Certain, "reported": contention.Reported, "predicted": contention.Predicted,
	} {
		if a.has(key) {
			j.Says, j.Certainty = a.duration(key, 0), certainty
		}
	}
	if a.has("service") {
		j.Certainty = contention.Never
	}
	if on := a.values["on"]; on != "" {
		j.On = a.nodes(on)
	}
	if j.Daemon {
		j.On, j.Pinned = nil, j.On
		j.Members = len(j.Pinned)
	}
	return j
}

// drawn reads a duration, or draws one of a range: 30m..60m.
func (s *Script) drawn(a *arguments, key string) int64 {
	low, high, ranged := strings.Cut(a.values[key], "..")
	if !ranged {
		return a.duration(key, 0)
	}
	from, errLow := time.ParseDuration(low)
	to, errHigh := time.ParseDuration(high)
	if errLow != nil || errHigh != nil || to <= from {
		a.fail(key)
		return 0
	}
	// A linear congruential generator (Knuth, MMIX): scripts draw the same everywhere.
	s.draw = s.draw*6364136223846793005 + 1442695040888963407
	return int64(from/time.Second) + int64((s.draw>>33)%uint64((to-from)/time.Second))
}

func (s *Script) job(a arguments) (string, error) {
	j := s.read(a)
	j.Name = a.word(0)
	s.scene.Jobs = append(s.scene.Jobs, j)
	return "", a.err
}

func (s *Script) fill(a arguments) (string, error) {
	nodes, per := a.nodes(a.values["on"]), s.scene.GPUs/max(1, a.number("gpus", s.scene.GPUs))
	for _, node := range nodes {
		for i := range per {
			j := s.read(a)
			j.Name, j.On = fmt.Sprintf("%s%d-%d", a.word(0), node+1, i+1), []int{node}
			s.scene.Jobs = append(s.scene.Jobs, j)
		}
	}
	return "", a.err
}

func (s *Script) stream(a arguments) (string, error) {
	count, over := a.number("count", 1), a.duration("over", 0)
	for i := range count {
		j := s.read(a)
		j.Name = fmt.Sprintf("%s%05d", a.word(0), i+1)
		j.Arrives += over * int64(i) / int64(count)
		if a.has("leaves") {
			s.scene.Events = append(s.scene.Events,
				Event{At: j.Arrives + a.duration("leaves", 0), Kind: Suspend, Job: j.Name})
		}
		s.scene.Jobs = append(s.scene.Jobs, j)
	}
	return "", a.err
}

func (s *Script) event(a arguments) (string, error) {
	e := Event{At: a.instant("at"), Kind: EventKind(a.word(0)), Reason: contention.Reason(a.values["as"])}
	switch e.Kind {
	case Fail, Return, Cordon:
		e.Nodes = a.nodes(a.word(1))
	case FailOver:
	case Suspend, Resume, Restore, Finish, Extend, Revoke, Stall, Ask, Progress, Bound:
		e.Job = a.word(1)
	case Hold:
		e.Job, e.Nodes, e.Used = a.word(1), a.nodes(a.values["on"]), contention.None
		if a.has("used") {
			e.Used = a.duration("used", 0)
		}
	case Lose:
		e.Job, e.Nodes = a.word(1), a.nodes(a.values["on"])
	default:
		a.fail(string(e.Kind))
	}
	s.scene.Events = append(s.scene.Events, e)
	return "", a.err
}

func (s *Script) play(a arguments) (string, error) {
	p, err := s.begun()
	if err != nil {
		return "", err
	}
	err = p.Play(a.instant("until"))
	lines := p.Log[s.printed:]
	s.printed = len(p.Log)
	if a.has("quiet") {
		lines = nil
	}
	if only := a.values["only"]; only != "" {
		lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
			_, after, _ := strings.Cut(line, " ")
			return !strings.HasPrefix(after, only)
		})
	}
	out := strings.Join(append(slices.Clone(lines), ""), "\n")
	return out, errors.Join(err, a.err)
}

func (s *Script) show(arguments) (string, error) {
	p, err := s.begun()
	if err != nil {
		return "", err
	}
	return p.Picture(), nil
}

func (s *Script) queue(arguments) (string, error) {
	p, err := s.begun()
	if err != nil {
		return "", err
	}
	return p.Queue(), nil
}

func (s *Script) leases(arguments) (string, error) {
	p, err := s.begun()
	if err != nil {
		return "", err
	}
	var lines []string
	for _, l := range p.machine.Leases() {
		lines = append(lines, fmt.Sprintf("%s; idled %d GPU-h", describe(l), l.Budget.Idled/3600))
	}
	if lines == nil {
		return "no leases\n", nil
	}
	return strings.Join(lines, "\n") + "\n", nil
}

func (s *Script) use(a arguments) (string, error) {
	p, err := s.begun()
	if err != nil {
		return "", err
	}
	if a.has("reset") {
		p.Reset()
		return "", nil
	}
	return fmt.Sprintf("%d.%d %% in use\n", p.InUse()/10, p.InUse()%10), nil
}

func (s *Script) idled(arguments) (string, error) {
	p, err := s.begun()
	if err != nil {
		return "", err
	}
	part := p.Idled()
	return fmt.Sprintf("%d.%d %% idled\n", part/10, part%10), nil
}

func (s *Script) turns(arguments) (string, error) {
	p, err := s.begun()
	if err != nil {
		return "", err
	}
	n := p.Turns - s.counted
	s.counted = p.Turns
	return fmt.Sprintf("%d\n", n), nil
}

func (s *Script) waits(a arguments) (string, error) {
	p, err := s.begun()
	if err != nil {
		return "", err
	}
	started, waiting, mean := p.Waits(a.word(0))
	return fmt.Sprintf("%d started, %d wait, mean wait %s\n", started, waiting, time.Duration(mean)*time.Second), a.err
}
