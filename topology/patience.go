package topology

import (
	"fmt"
	"strconv"
)

// The range of AnnotationStartPatience in seconds.
const (
	leastPatience = 1
	mostPatience  = 24 * 60 * 60
)

// ParsePatience reads the value of AnnotationStartPatience, an integer with a unit such as 90s, 20m or 2h, and returns
// it in seconds: from 1 to 86,400.
func ParsePatience(text string) (int64, error) {
	units := map[byte]int64{'s': 1, 'm': 60, 'h': 60 * 60}
	if text == "" || units[text[len(text)-1]] == 0 {
		return 0, fmt.Errorf("%q is no integer with the unit s, m or h", text)
	}
	number, err := strconv.ParseInt(text[:len(text)-1], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no integer with the unit s, m or h", text)
	}
	seconds := number * units[text[len(text)-1]]
	if seconds < leastPatience || seconds > mostPatience {
		return 0, fmt.Errorf("%s is not between 1s and 24h", text)
	}
	return seconds, nil
}
