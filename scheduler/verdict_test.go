package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/topology"
)

// What only the framework's filters know, the plan does not: it has to find out. Whatever it planned first, a gang ends
// whole where the filters let it, within the time that waitBound gives, or waits.

// refused is what a gang is told that has nowhere to go because of the filters.
const refused = "refused by the scheduler's filters"

// zoned labels each clique as a zone of its own.
func zoned(nodes []*corev1.Node) []*corev1.Node {
	for _, n := range nodes {
		n.Labels["example.com/hall"] = "hall-of-" + n.Labels[topology.LabelClique]
	}
	return nodes
}

func avoids(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: by(app, corev1.LabelHostname),
		}}
	}
}

func seeks(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: by(app, key),
		}}
	}
}

// inOneClique fails unless the nodes are all of one clique, and returns that.
func inOneClique(t *testing.T, nodes []string) string {
	t.Helper()
	at := nodes[0][:2]
	if slices.ContainsFunc(nodes, func(n string) bool { return !strings.HasPrefix(n, at) }) {
		t.Errorf("the gang is on %v, not in one clique", nodes)
	}
	return at
}

// A noisy service runs on one node of the clique that the plan prefers.
func TestGangKeepsAwayFromANoisyNeighbor(t *testing.T) {
	t.Parallel()
	noisy := service("noisy", nodeName(0, 2), map[string]string{"app": "noisy"})
	c := listed(t, append(as(cliques(2, 4)...), noisy)...)

	group, members := ranked("elsewhere", 4, "clique", avoids("noisy"))
	c.add(t, group, members)
	if got := c.waitBound(t, members); !slices.Equal(got, inClique(1, 4)) {
		t.Errorf("members by rank are on %v, want clique 1 in order", got)
	}
	group, waiting := ranked("nowhere", 4, "clique", avoids("noisy"))
	c.add(t, group, waiting)
	if why := c.waitRejected(t, "nowhere"); !strings.Contains(why, refused) {
		t.Errorf("the gang that fits nowhere is told %q, want %q in it", why, refused)
	}
	group, members = ranked("around", 3, "clique", avoids("noisy"))
	c.add(t, group, members)
	got := c.waitBound(t, members)
	slices.Sort(got)
	if want := []string{nodeName(0, 0), nodeName(0, 1), nodeName(0, 3)}; !slices.Equal(got, want) {
		t.Errorf("the gang is on %v, want %v", got, want)
	}
	c.nobodyBound(t, waiting)
}

// The members must be where their cache is. All nodes of the other cliques refuse them.
func TestGangGoesToItsCache(t *testing.T) {
	for name, fleet := range map[string]struct{ cliques, size int }{
		"two cliques that the gang fills":      {2, 4},
		"four cliques with room for two of it": {4, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := fleet.cliques - 1
			cache := service("cache", nodeName(last, 0), map[string]string{"app": "cache"})
			c := listed(t, append(as(zoned(cliques(fleet.cliques, fleet.size))...), cache)...)
			group, members := ranked("cached", 4, "clique", seeks("cache", "example.com/hall"))
			c.add(t, group, members)
			if got := inOneClique(t, c.waitBound(t, members)); got != fmt.Sprint("c", last) {
				t.Errorf("the gang is in %s, its cache in c%d", got, last)
			}
		})
	}
}

// A gang whose cache runs nowhere waits and is told so; the cache comes, and it goes.
func TestGangWaitsForItsCache(t *testing.T) {
	t.Parallel()
	c := listed(t, as(zoned(cliques(2, 4))...)...)
	group, members := ranked("cached", 4, "clique", seeks("cache", "example.com/hall"))
	c.add(t, group, members)
	if why := c.waitRejected(t, "cached"); !strings.Contains(why, refused) {
		t.Errorf("the gang is told %q, want %q in it", why, refused)
	}
	other, fits := gang("other", 4, "clique")
	c.add(t, other, fits)
	at := inOneClique(t, c.waitBound(t, fits))
	c.nobodyBound(t, members)

	free := map[string]int{"c0": 1, "c1": 0}[at]
	c.add(t, service("cache", nodeName(free, 0), map[string]string{"app": "cache"}))
	if got := inOneClique(t, c.waitBound(t, members)); got == at {
		t.Errorf("the gang is in %s with the other gang", got)
	}
}

// Members that bear no other member on their host: the plan, which does not know, packs four on each.
func TestOneMemberForEachHost(t *testing.T) {
	alone := func(p *corev1.Pod) {
		p.Labels["app"] = "alone"
		asks(p, gpu, "1")
		avoids("alone")(p)
	}
	for name, test := range map[string]struct {
		members  int
		required string
	}{
		"anywhere":                          {6, ""},
		"in the clique that is planned":     {4, "clique"},
		"in a clique that has enough hosts": {6, "clique"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small, large := cliques(1, 4), cliques(2, 8)
			large = slices.DeleteFunc(large, func(n *corev1.Node) bool { return strings.HasPrefix(n.Name, "c0") })
			c := listed(t, slices.Concat(as(small...), as(large...))...)
			group, members := ranked("alone", test.members, test.required, alone)
			c.add(t, group, members)
			got := c.waitBound(t, members)
			if test.required != "" {
				inOneClique(t, got)
			}
			slices.Sort(got)
			if hosts := len(slices.Compact(got)); hosts != test.members {
				t.Errorf("%d members are on %d hosts", test.members, hosts)
			}
		})
	}
}

// evenly divides pods with the label app over cliques.
func evenly(p *corev1.Pod) {
	p.Labels["app"] = "even"
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: topology.LabelClique, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "even"}},
	}}
}

func TestMembersWithASpreadConstraint(t *testing.T) {
	c := listed(t, as(cliques(3, 4)...)...)
	group, members := ranked("even", 6, "", evenly)
	c.add(t, group, members)
	count := make(map[string]int)
	for _, at := range c.waitBound(t, members) {
		count[at[:2]]++
	}
	if count["c0"] != 2 || count["c1"] != 2 || count["c2"] != 2 {
		t.Errorf("members by clique: %v, want two in each", count)
	}
}

// Even division over cliques and one clique for all contradict each other.
func TestContradictionWaits(t *testing.T) {
	t.Parallel()
	c := listed(t, as(cliques(2, 4)...)...)
	group, members := ranked("torn", 4, "clique", evenly)
	c.add(t, group, members)
	if why := c.waitRejected(t, "torn"); !strings.Contains(why, refused) {
		t.Errorf("the gang is told %q, want %q in it", why, refused)
	}
	other, fits := gang("other", 4, "clique")
	c.add(t, other, fits)
	inOneClique(t, c.waitBound(t, fits))
	c.nobodyBound(t, members)
}

// The volume that all members share can be reached from one clique only.
func TestGangGoesToItsVolume(t *testing.T) {
	t.Parallel()
	volume := append(claim("data", topology.LabelClique, "fabric.1"), storageClass())
	c := listed(t, slices.Concat(as(cliques(2, 4)...), volume)...)
	group, members := ranked("reads", 4, "clique", func(p *corev1.Pod) { mounts(p, "data") })
	c.add(t, group, members)
	if got := inOneClique(t, c.waitBound(t, members)); got != "c1" {
		t.Errorf("the gang is in %s, its volume in c1", got)
	}
	group, waiting := ranked("reads-too", 4, "clique", func(p *corev1.Pod) { mounts(p, "data") })
	c.add(t, group, waiting)
	if why := c.waitRejected(t, "reads-too"); !strings.Contains(why, refused) {
		t.Errorf("the gang is told %q, want %q in it", why, refused)
	}
	other, fits := gang("other", 4, "clique")
	c.add(t, other, fits)
	c.waitBound(t, fits)
	c.nobodyBound(t, waiting)
}

// Each member has a volume on a disk of one host: the scheduler narrows the search to that host before its filters.
func TestMembersGoToTheirDisks(t *testing.T) {
	t.Parallel()
	objects := append(as(cliques(2, 4)...), runtime.Object(storageClass()))
	group, members := gang("disks", 3, "clique")
	want := make([]string, len(members))
	for i, p := range members {
		disk := fmt.Sprint("disk-", i)
		want[i] = nodeName(1, i+1)
		objects = append(objects, claim(disk, corev1.LabelHostname, want[i])...)
		mounts(p, disk)
	}
	c := listed(t, objects...)
	c.add(t, group, members)
	if got := c.waitBound(t, members); !slices.Equal(got, want) {
		t.Errorf("members by rank are on %v, their disks on %v", got, want)
	}
}

// A claim that nobody made: the gang waits and is told so, others go on; the claim comes, and it goes.
func TestGangWaitsForItsClaim(t *testing.T) {
	t.Parallel()
	c := listed(t, append(as(cliques(2, 4)...), runtime.Object(storageClass()))...)
	group, members := ranked("early", 4, "clique", func(p *corev1.Pod) { mounts(p, "late") })
	c.add(t, group, members)
	other, fits := gang("other", 4, "clique")
	c.add(t, other, fits)
	c.waitBound(t, fits)
	c.waitRejected(t, "early")
	c.nobodyBound(t, members)
	for _, o := range claim("late", topology.LabelClique, "fabric.0", "fabric.1") {
		if err := c.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	inOneClique(t, c.waitBound(t, members))
}
