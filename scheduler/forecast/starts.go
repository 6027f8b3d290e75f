package forecast

import (
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"
)

// Outlook is the state of a wait when it begins.
type Outlook struct {
	// Accelerators is the number that the start needs.
	Accelerators int64
	// Backlog is the forecast of Backlog.Wait in seconds.
	Backlog int64
	// Oldest is the wait so far, in seconds, of the workload that waits longest.
	Oldest int64
	// Peers names those that wait about as long (see Peers).
	Peers string
}

// Peers names workloads that wait about as long: those of one namespace and priority.
func Peers(namespace string, priority int32) string {
	return join(namespace, strconv.Itoa(int(priority)))
}

// Starts forecasts waits as intervals with the stated probability. It has three views of a wait: earlier waits of its
// peers, in proportion to the longest current wait, and in proportion to the backlog. For each view, the distances of
// waits from it are counted by the size of the workload and the order of magnitude of the view; waits that are not over
// are counted as longer than they are now (Kaplan and Meier, "Nonparametric estimation from incomplete observations",
// JASA 53, 1958), so that long ones are not learned last. The forecast is made by earlier waits alone, by the mean of
// the views, in logarithms, or by the waits of peers that have ended: by the way that had the least pinball loss of
// late, and loses least if those that still wait started now.
//
// The outer bounds of each are shifted by their errors: a wait beyond a bound moves it outwards, any other moves it
// inwards, in steps whose ratio is that of the chances, so that in the long run each bound is passed as often as it
// should be, whatever the waits are (quantile tracking: Angelopoulos, Candès and Tibshirani, "Conformal PID Control for
// Time Series Prediction", NeurIPS 2023, proposition 1; Gibbs and Candès, "Adaptive conformal inference under
// distribution shift", NeurIPS 2021). That a wait is beyond a bound is known when it passes the bound, not when it
// ends. It is not safe for concurrent use.
type Starts struct {
	sizes [sizeClasses]waits
	// longest is the longest wait so far, in seconds: no forecast is longer than twice that.
	longest int64
	open    map[string]*pending
	// order are the open waits in the order in which they began.
	order []*pending
	// logs are the logarithms of the open waits as they are now.
	logs []int64
	// waited are the open waits as they are now, in seconds.
	waited []int64
}

// The views of a wait.
const (
	viewPast = iota
	viewOldest
	viewBacklog
	views
)

const (
	// sizeClasses are the classes of workloads by accelerators: one, up to a node of eight, up to eight nodes, and more.
	sizeClasses = 4
	// magnitudes are the classes of views by order of magnitude, of two octaves each.
	magnitudes = 12
	// octave is the unit of logarithms: 256 are a factor of two.
	octave = 256
	// fine is the number of parts of that unit in which shifts are counted.
	fine = 16
	// step is the distance that a bound moves for each tenth of chance, in those parts. Waits of one burst move bounds in the same direction: with four times the
	// step, forecasts after a burst were of no use.
	step = 1
	// mostShift bounds shifts, in those parts: three octaves.
	mostShift = 3 * octave * fine
	// lossFades is the number of waits over which a loss is summed.
	lossFades = 256
	// least is added to waits, in seconds: shorter waits are not distinguished.
	least = 60
	// leastLongest is the longest wait before any is known, in seconds.
	leastLongest = 3600
)

// waits holds the observed waits of a size class.
type waits struct {
	// all counts the distances of waits from each view, by logarithm, by does for each of its magnitudes.
	all [views]deviations
	by  [views][magnitudes]deviations
	// ways are the ways of forecasting.
	ways [ways]way
}

// The ways of a forecast: earlier waits alone, the mean of the views, and the waits of peers that have ended.
const (
	wayPast = iota
	wayMean
	wayPeers
	ways
)

// way holds the record of a way of forecasting.
type way struct {
	// shifts are those of the low and the high bound, in parts of a logarithm's unit.
	shifts [2]int64
	// loss is the fading sum of the pinball losses, in thousandths of seconds.
	loss int64
}

// deviations counts logarithms of waits minus those of a view, in buckets of a quarter of an octave, from sixteen octaves below.
type deviations struct {
	ended Distribution
	// told counts the forecasts.
	told int64
}

// pending is a wait that is not over.
type pending struct {
	id    string
	at    int64
	size  int
	told  Interval
	views [views]view
	// by is the forecast of each way; over is set for its low and its high bound if the wait is known to be beyond it.
	by   [ways]Interval
	over [ways][2]bool
}

// view is one view of a wait.
type view struct {
	Interval

	// log is the logarithm of the view, magnitude its class.
	log       int64
	magnitude int
	// all and by are the numbers of the forecast among those of its deviations.
	all, by int64
}

// NewStarts returns forecasts that rest on nothing yet.
func NewStarts() *Starts { return &Starts{longest: leastLongest, open: make(map[string]*pending)} }

// sizeClass returns the class of a number of accelerators.
func sizeClass(accelerators int64) int {
	const eights = 3
	return min((bits.Len64(uint64(max(accelerators, 1)-1))+eights-1)/eights, sizeClasses-1)
}

// Forecast returns the forecast that was made for a wait, and the instant in seconds at which it was made; false without one.
func (s *Starts) Forecast(id string) (at int64, told Interval, ok bool) {
	if p := s.open[id]; p != nil {
		return p.at, p.told, true
	}
	return 0, Interval{}, false
}

// Tell forecasts a wait that begins now, in seconds. A wait has one forecast: of one that has it already, that is returned.
func (s *Starts) Tell(id string, now int64, o Outlook) Interval {
	if p := s.open[id]; p != nil {
		return p.told
	}
	s.passes(now)
	p := &pending{id: id, at: now, size: sizeClass(o.Accelerators)}
	of := &s.sizes[p.size]
	for i, wait := range [views]int64{0, o.Oldest, o.Backlog} {
		v := &p.views[i]
		v.log = logOf(wait)
		v.magnitude = min(int(v.log-logOf(0))/(2*octave), magnitudes-1)
		if i == viewPast { // it has no magnitude
			v.magnitude = numberOf(o.Peers)
		}
		s.forecast(of, p, i)
	}
	p.by[wayPast], p.by[wayMean] = p.views[viewPast].Interval, p.meanOf()
	for i := range p.by {
		p.by[i] = s.shifted(p.by[i], of.ways[i].shifts)
	}
	p.told = p.by[s.best(p)]
	s.open[id] = p
	s.order = append(s.order, p)
	return p.told
}

// numberOf returns the class of waits by themselves that some peers have, with others of the same hash.
func numberOf(peers string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(peers)) // it cannot fail
	return int(hash.Sum32() % magnitudes)
}

// meanOf returns the mean of the views, in logarithms.
func (p *pending) meanOf() Interval {
	var low, middle, high int64
	for i := range p.views {
		v := &p.views[i]
		low, middle, high = low+logOf(v.Low), middle+logOf(v.Middle), high+logOf(v.High)
	}
	return Interval{waitOf(low / views), waitOf(middle / views), waitOf(high / views)}
}

// best returns the way with the least loss of late. Its present forecast is compared with the waits that are not over,
// too: an error about those is known before they end.
func (s *Starts) best(p *pending) int {
	var losses [ways]int64
	for i, way := range s.sizes[p.size].ways {
		losses[i] = way.loss
	}
	for k, q := range s.order {
		if q.size != p.size {
			continue
		}
		for i := range losses {
			losses[i] += p.by[i].lossBy(s.waited[k])
		}
	}
	best := 0
	for i, loss := range losses {
		if loss < losses[best] {
			best = i
		}
	}
	return best
}

// shifted returns a forecast with its outer bounds shifted by parts of a logarithm.
func (s *Starts) shifted(i Interval, shifts [2]int64) Interval {
	i.Low = min(waitOf(logOf(i.Low)+shifts[0]/fine), s.longest)
	i.High = min(waitOf(logOf(i.High)+shifts[1]/fine), 2*s.longest)
	i.Middle = min(max(i.Middle, i.Low), i.High)
	i.Low = min(i.Low, i.Middle)
	return i
}

// forecast makes the forecast of a view.
func (s *Starts) forecast(of *waits, p *pending, i int) {
	v := &p.views[i]
	all, by := &of.all[i], &of.by[i][v.magnitude]
	all.tells()
	by.tells()
	v.all, v.by = all.told, by.told
	var waiting, alike Distribution
	for k, q := range s.order {
		if q.size != p.size {
			continue
		}
		w := &q.views[i]
		b := deviation(s.logs[k] - w.log)
		waiting[b] += faded(all.told - w.all)
		if w.magnitude == v.magnitude {
			alike[b] += faded(by.told - w.by)
		}
	}
	broad := wide(i)
	broad = all.ended.over(&broad)
	broad = survival(&broad, &waiting)
	narrow := by.ended.over(&broad)
	narrow = survival(&narrow, &alike)
	bound := func(of int64) int64 { return waitOf(v.log + quantileOf(&narrow, of)) }
	if i == viewPast {
		few := by.ended.over(&all.ended)
		raw := func(of int64) int64 { return waitOf(v.log + quantileOf(&few, of)) }
		p.by[wayPeers] = Interval{raw(LowQuantile), raw(perMille / 2), raw(HighQuantile)}
	}
	v.Low = min(bound(LowQuantile), s.longest)
	v.Middle = min(bound(perMille/2), s.longest*3/2)
	v.High = min(bound(HighQuantile), s.longest*2)
}

// wide returns the expected deviations before any is observed: within an eighth and eight times the view, anything up to two days of a wait by itself.
func wide(i int) (d Distribution) {
	low, high := deviation(-3*octave), deviation(3*octave)
	if i == viewPast {
		low, high = deviation(0), deviation(12*octave)
	}
	for b := low; b <= high; b++ {
		d[b] = one
	}
	return d
}

const (
	// bucketWidth is that of deviations, in logarithms; the first begins sixteen octaves below.
	bucketWidth = octave / perOctave
	lowest      = -octaves / 2 * octave
)

// deviation returns the bucket of a deviation.
func deviation(log int64) int {
	return int(min(max((log-lowest)/bucketWidth, 0), buckets-1))
}

// quantileOf returns the deviation that so many in a thousand do not exceed.
func quantileOf(d *Distribution, of int64) int64 {
	want, below := d.sum()*of/perMille, int64(0)
	for i, n := range d {
		if n > 0 && below+n >= want {
			return lowest + int64(i)*bucketWidth + bucketWidth*(want-below)/n
		}
		below += n
	}
	return 0
}

// tells counts a forecast, and lets those before it fade.
func (d *deviations) tells() {
	d.told++
	for i := range d.ended {
		d.ended[i] -= d.ended[i] / halving
	}
}

// faded returns the weight of a wait after so many later forecasts of its class.
func faded(later int64) int64 {
	const half = 64
	if later >= half*16 {
		return 0
	}
	weight := int64(one) >> (later / half)
	return weight - weight*(later%half)/(2*half)
}

// survival returns the distribution of deviations, ended ones and those of waits that still last and exceed their
// present length.
func survival(ended, waiting *Distribution) (out Distribution) {
	const whole = 1 << 30
	risk := ended.sum() + waiting.sum()
	left, last := int64(whole), 0
	for i := range ended {
		if n := ended[i]; n > 0 && risk > waiting[i]/2 {
			out[i] = min(left, left*n/(risk-waiting[i]/2))
			left -= out[i]
		}
		if ended[i]+waiting[i] > 0 {
			last = i
		}
		risk -= ended[i] + waiting[i]
	}
	out[min(last+1, buckets-1)] += left
	return out
}

// passes notes the waits that have passed their bounds.
func (s *Starts) passes(now int64) {
	s.logs, s.waited = s.logs[:0], s.waited[:0]
	for _, p := range s.order {
		waited := now - p.at
		s.logs, s.waited = append(s.logs, logOf(waited)), append(s.waited, waited)
		s.longest = max(s.longest, waited)
		for way, told := range p.by {
			for i, bound := range [2]int64{told.Low, told.High} {
				if !p.over[way][i] && waited > bound {
					p.over[way][i] = true
					s.move(p.size, way, i, [2]int64{1, 9}[i])
				}
			}
		}
	}
}

// move moves a bound by so many tenths of chance.
func (s *Starts) move(size, way, bound int, by int64) {
	shift := &s.sizes[size].ways[way].shifts[bound]
	*shift = min(max(*shift+by*step, -mostShift), mostShift)
}

// Started notes that a wait has ended by a start. It reports whether it was forecast.
func (s *Starts) Started(id string, now int64) bool {
	p := s.open[id]
	if p == nil {
		return false
	}
	s.passes(now)
	s.Forget(id)
	of, waited := &s.sizes[p.size], now-p.at
	for way := range p.over {
		for i, over := range p.over[way] {
			if !over {
				s.move(p.size, way, i, [2]int64{-9, -1}[i])
			}
		}
		of.ways[way].loss += p.by[way].loss(waited) - of.ways[way].loss/lossFades
	}
	for i := range p.views {
		v := &p.views[i]
		all, by := &of.all[i], &of.by[i][v.magnitude]
		b := deviation(logOf(waited) - v.log)
		all.ended[b] += faded(all.told - v.all)
		by.ended[b] += faded(by.told - v.by)
	}
	return true
}

// Forget drops a wait that ends without a start.
func (s *Starts) Forget(id string) {
	if s.open[id] != nil {
		delete(s.open, id)
		s.order = slices.DeleteFunc(s.order, func(p *pending) bool { return p.id == id })
	}
}
