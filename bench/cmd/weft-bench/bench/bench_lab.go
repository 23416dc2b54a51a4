package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/bench/cmd/weft-bench/demo"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/test/measure"
)

// benchPeer is the controller that Weft's is compared with in a lab unless
// told otherwise.
const benchPeer = "ovs-testcontroller --unixctl=none ptcp:{port}:127.0.0.1"

// benchLab is a controller of its own with a lab of its own.
type benchLab struct {
	benchSubject
	north string // HOST:PORT of the northbound; empty if it is not Weft
	lab   *lab.Lab
}

// benchLabs numbers the labs of this process.
var benchLabs atomic.Int32

// benchLabController starts a controller for a lab: the command, or Weft's own
// if that is empty, with further arguments. It is not pinned to a processor.
func benchLabController(ctx context.Context, command string, more ...string) (*benchLab, error) {
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	none := benchCPUs{-1, -1}
	b := &benchLab{benchSubject: benchSubject{name: "weft", address: fmt.Sprintf("127.0.0.1:%d", port)}}
	if command != "" {
		words := strings.Fields(strings.ReplaceAll(command, "{port}", strconv.Itoa(port)))
		b.name = words[0]
		return b, b.start(ctx, none, words[0], words[1:]...)
	}
	http, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	b.north = fmt.Sprintf("127.0.0.1:%d", http)
	self, err := companion.Find("weft")
	if err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "weft-bench-"); err != nil {
		return nil, err
	}
	return b, b.start(ctx, none, self, append(benchWeftArgs(b.address, b.north, b.dir, benchAll), more...)...)
}

// up brings the lab up, its switches connecting to the given controller.
func (b *benchLab) up(ctx context.Context, topo *topology.Topology, controller string) error {
	self, err := companion.Find("weft")
	if err != nil {
		return err
	}
	keeper := []string{self, "lab", "keeper"}
	if b.north != "" { // to whom hybrid nodes are reported
		keeper = append([]string{"env", "WEFT_SERVER=http://" + b.north}, keeper...)
	}
	b.lab, err = lab.Up(ctx, topo, lab.Options{
		Temporary:     true,
		Name:          fmt.Sprintf("bench-%d-%d", os.Getpid(), benchLabs.Add(1)),
		Controllers:   []string{controller},
		KeeperCommand: keeper, Weft: self,
	})
	return err
}

// ready waits until Weft knows all of the lab.
func (b *benchLab) ready(ctx context.Context) error {
	_, err := b.asked().AwaitDiscovery(ctx)
	return b.child.Failed(err)
}

// asked returns what asks Weft about the lab.
func (b *benchLab) asked() *demo.Demo { return &demo.Demo{HTTP: b.north, Lab: b.lab} }

// down takes lab and controller down.
func (b *benchLab) down() error {
	var err error
	if b.lab != nil {
		err = b.lab.Down(context.Background())
	}
	b.close()
	return err
}

// benchNeedLab says what is missing for a lab.
func benchNeedLab() error {
	if os.Geteuid() != 0 {
		return errors.New("the lab makes network namespaces and so needs root; try sudo")
	}
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		return errors.New("the lab needs Open vSwitch: apt-get install openvswitch-switch")
	}
	return nil
}

// benchSpread is how a figure is distributed over runs, in milliseconds.
type benchSpread struct {
	Median float64   `json:"median"`
	CI95   []float64 `json:"ci95"` // of the median
	P95    float64   `json:"p95"`
	Max    float64   `json:"max"`
}

// interval is the median with its interval.
func (s benchSpread) interval() measure.Interval {
	return measure.Interval{Median: s.Median, CI95: s.CI95}
}

// newBenchSpread sums values up; of none it is zero.
func newBenchSpread(values []float64) benchSpread {
	if len(values) == 0 {
		return benchSpread{}
	}
	v := slices.Sorted(slices.Values(values))
	m := measure.Median(v)
	return benchSpread{Median: m.Median, CI95: m.CI95, P95: quantile.Nearest(v, 0.95), Max: v[len(v)-1]}
}

// benchMark is a figure beside what it is to be: at most, or at least.
type benchMark struct {
	What   string    `json:"what"`
	Figure float64   `json:"figure"`
	CI95   []float64 `json:"ci95"`
	Most   float64   `json:"most,omitempty"`
	Least  float64   `json:"least,omitempty"`
	Met    bool      `json:"met"`
}

// newBenchMark is of a figure that is to be at most so much.
func newBenchMark(what string, figure measure.Interval, most float64) benchMark {
	v := benchNumber(figure.Median)
	return benchMark{What: what, Figure: v, CI95: figure.CI95, Most: most, Met: v <= most}
}

// newBenchLeast is of a figure that is to be at least so much.
func newBenchLeast(what string, figure measure.Interval, least float64) benchMark {
	v := benchNumber(figure.Median)
	return benchMark{What: what, Figure: v, CI95: figure.CI95, Least: least, Met: v >= least}
}

func (m benchMark) String() string {
	verdict, want := "met", fmt.Sprintf("at most %g", m.Most)
	if m.Least > 0 {
		want = fmt.Sprintf("at least %g", m.Least)
	}
	if !m.Met {
		verdict = "MISSED"
	}
	between := ""
	if len(m.CI95) == 2 {
		between = fmt.Sprintf(" (95 %%: %.2f to %.2f)", m.CI95[0], m.CI95[1])
	}
	return fmt.Sprintf("%s: %.2f%s, %s: %s", m.What, m.Figure, between, want, verdict)
}

// benchMilliseconds returns a time in milliseconds, to the microsecond.
func benchMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
