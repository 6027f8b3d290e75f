package faults

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// chance draws numbers by words: a draw for one thing does not depend on draws for others, so that removing something
// from a scene changes nothing else.
type chance struct {
	seed uint64
	// times counts the draws for equal words.
	times map[string]int
}

func newChance(seed uint64) *chance { return &chance{seed: seed, times: make(map[string]int)} }

// of is a number below n.
func (c *chance) of(n int, words ...string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatUint(c.seed, 10))) // a hash never fails
	key := strings.Join(words, "/")
	c.times[key]++
	_, _ = h.Write([]byte(key + "#" + strconv.Itoa(c.times[key])))
	x := h.Sum64()
	x ^= x >> 33 // FNV's low bits differ too little between words that end alike
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return int(x % uint64(n)) //nolint:gosec // n is positive and small
}

// delay is between a tenth of the usual duration and twice that, in whole milliseconds and at least one.
func (c *chance) delay(usual time.Duration, words ...string) time.Duration {
	const parts = 1000
	least := usual / 10
	d := least + (2*usual-least)*time.Duration(c.of(parts, words...))/parts
	return max(d.Truncate(time.Millisecond), time.Millisecond)
}
