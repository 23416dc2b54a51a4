package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/test/measure"
	"github.com/weft-sdn/weft/test/testbed"
)

// benchFlowsConfig is the flags of flows.
type benchFlowsConfig struct {
	entries  int
	switches int
	rounds   int
	output   string
}

func benchFlowsCommand() *cobra.Command {
	var c benchFlowsConfig
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "Measure adding, listing and keeping many flow entries",
		Long: `Measure what many of the operator's flow entries cost: each round starts Weft's
own controller with all its services and no data, adds the entries from a file as
weft flow add --no-wait does, lists them as weft get flows does, stops the
controller and starts it again. No switch is connected: entries are stored before
they are sent, and how fast switches take them is theirs.

  added    from starting weft flow add to its end
  listed   from starting weft get flows to its end
  restart  from starting the controller with these entries until it is healthy
  memory   resident memory of the controller more than without entries, for each,
           when it has been idle for 12 s`,
		Example: `  weft bench flows
  weft bench flows --entries 10000 --rounds 5 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return benchRunFlows(ctx, c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.entries, "entries", 100_000, "flow entries")
	f.IntVar(&c.switches, "switches", 16, "switches that they are for")
	f.IntVar(&c.rounds, "rounds", 3, "rounds; the report gives medians")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	return cmd
}

// check says which flag is wrong.
func (c *benchFlowsConfig) check() error {
	switch {
	case c.entries < 1 || c.entries > 1<<24:
		return fmt.Errorf("--entries %d: want 1 to %d", c.entries, 1<<24)
	case c.switches < 1:
		return fmt.Errorf("--switches %d: want at least 1", c.switches)
	case c.rounds < 1:
		return fmt.Errorf("--rounds %d: want at least 1", c.rounds)
	}
	return benchCheckOutput(c.output)
}

// benchFlowsRound is one round of flows.
type benchFlowsRound struct {
	AddedS   float64 `json:"added_s"`
	ListedS  float64 `json:"listed_s"`
	RestartS float64 `json:"restart_s"`
	EmptyS   float64 `json:"empty_start_s"` // of a start without entries
	Octets   float64 `json:"octets_each"`   // of memory
	CPUS     float64 `json:"added_cpu_s"`   // of the controller
}

// benchFlows is what flows prints: medians of the rounds at the top.
type benchFlows struct {
	benchTaken
	Entries int `json:"entries"`
	Rounds  int `json:"rounds"`
	benchFlowsRound
	CI95   benchCI95          `json:"ci95"`
	Marks  []benchMark        `json:"marks,omitempty"`
	Detail []*benchFlowsRound `json:"detail"`
}

// benchRunFlows is `weft bench flows`.
func benchRunFlows(ctx context.Context, c benchFlowsConfig, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "weft-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "flows.json")
	if err := c.write(file); err != nil {
		return err
	}
	r := &benchFlows{Entries: c.entries, Rounds: c.rounds}
	r.begin(c.differs()...)
	for n := range c.rounds {
		one, err := c.round(ctx, file)
		if err != nil {
			return err
		}
		r.Detail = append(r.Detail, one)
		fmt.Fprintf(progress, "round %d/%d: added in %.2f s, listed in %.2f s, restart in %.2f s, %.0f octets each\n",
			n+1, c.rounds, one.AddedS, one.ListedS, one.RestartS, one.Octets)
	}
	r.end()
	r.sum()
	return r.write(out, c.output)
}

// differs is what has to be set for so many entries.
func (c *benchFlowsConfig) differs() []string {
	if c.entries <= benchFlowsMost {
		return nil
	}
	return []string{fmt.Sprintf("flowrules.max_flows=%d", c.entries)}
}

// benchFlowsRest is how long a controller is left alone before its memory counts:
// twice as long as it takes to give back what it does not need.
const benchFlowsRest = 12 * time.Second

// benchFlowsMost is how many entries the controller takes unless told otherwise.
const benchFlowsMost = 100_000

// write writes the file of entries.
func (c *benchFlowsConfig) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	separator := "["
	for i := range c.entries {
		fmt.Fprintf(w, "%s\n"+`{"dpid": "%v", "priority": 50000, "match": {"eth_type": "0x0800", "ipv4_dst": "10.%d.%d.%d"}, "actions": ["output:%d"]}`,
			separator, flow.DPID(i%c.switches+1), i>>16&255, i>>8&255, i&255, i%4+1)
		separator = ","
	}
	fmt.Fprintln(w, "\n]")
	return errors.Join(w.Flush(), f.Close())
}

// round measures one controller.
func (c *benchFlowsConfig) round(ctx context.Context, file string) (*benchFlowsRound, error) {
	dir, err := os.MkdirTemp("", "weft-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &benchFlowsRound{}
	s, server, took, err := c.start(ctx, dir)
	if err != nil {
		return nil, err
	}
	r.EmptyS = took
	before, cpu := benchMemory("VmRSS", s.child.All()...), benchCPU(s.child)
	r.AddedS, err = benchTimed(ctx, nil, "flow", "add", "--server", server, "-f", file, "--no-wait")
	if err == nil {
		r.CPUS = (benchCPU(s.child) - cpu).Seconds()
		var lines benchLines
		if r.ListedS, err = benchTimed(ctx, &lines, "get", "flows", "--server", server); err == nil && int(lines) < c.entries {
			err = fmt.Errorf("weft get flows has %d lines of %d entries", lines, c.entries)
		}
		select {
		case <-time.After(benchFlowsRest):
		case <-ctx.Done():
			err = ctx.Err()
		}
		r.Octets = float64(benchMemory("VmRSS", s.child.All()...)-before) / float64(c.entries)
	}
	if err != nil {
		err = s.child.Failed(err)
		s.close()
		return nil, err
	}
	s.close()
	s, _, r.RestartS, err = c.start(ctx, dir)
	if err != nil {
		return nil, err
	}
	s.close()
	return r, nil
}

// start starts a controller with its data in dir, and returns how long it took
// until it was healthy.
func (c *benchFlowsConfig) start(ctx context.Context, dir string) (s *benchSubject, server string, took float64, err error) {
	var ports [2]int
	for i := range ports {
		if ports[i], err = freeport.Port(); err != nil {
			return nil, "", 0, err
		}
	}
	self, err := companion.Find("weft")
	if err != nil {
		return nil, "", 0, err
	}
	north := fmt.Sprintf("127.0.0.1:%d", ports[1])
	s = &benchSubject{name: "weft", address: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	began := time.Now()
	args := benchWeftArgs(s.address, north, dir, benchAll)
	for _, set := range c.differs() {
		args = append(args, "--set", set)
	}
	if err := s.start(ctx, benchCPUs{-1, -1}, self, args...); err != nil {
		return nil, "", 0, err
	}
	server = "http://" + north
	for {
		body, err := benchFetch(ctx, server+"/healthz")
		switch {
		case err == nil:
			return s, server, time.Since(began).Seconds(), body.Close()
		case ctx.Err() != nil:
			err = ctx.Err()
		case time.Since(began) > time.Minute:
			err = s.child.Failed(fmt.Errorf("not healthy after a minute: %w", err))
		case s.child.Ended() != nil:
			err = s.child.Failed(errors.New("the controller has ended"))
		default:
			time.Sleep(5 * time.Millisecond)
			continue
		}
		s.close()
		return nil, "", 0, err
	}
}

// benchLines counts what is written to it, in lines.
type benchLines int

func (l *benchLines) Write(b []byte) (int, error) {
	*l += benchLines(strings.Count(string(b), "\n"))
	return len(b), nil
}

// benchTimed runs weft with arguments and returns how many seconds it took.
func benchTimed(ctx context.Context, out io.Writer, args ...string) (float64, error) {
	self, err := companion.Find("weft")
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var said testbed.Tail
	cmd.Stdout, cmd.Stderr = out, &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("weft %s: %w; it said:\n%s", strings.Join(args[:2], " "), err, said.String())
	}
	return time.Since(began).Seconds(), nil
}

// sum fills in medians, intervals and marks.
func (r *benchFlows) sum() {
	r.CI95 = benchCI95{}
	figure := func(name string, get func(*benchFlowsRound) *float64) measure.Interval {
		var v []float64
		for _, d := range r.Detail {
			v = append(v, *get(d))
		}
		m := measure.Median(v)
		*get(&r.benchFlowsRound), r.CI95[name] = m.Median, m.CI95
		return m
	}
	added := figure("added_s", func(r *benchFlowsRound) *float64 { return &r.AddedS })
	listed := figure("listed_s", func(r *benchFlowsRound) *float64 { return &r.ListedS })
	restart := figure("restart_s", func(r *benchFlowsRound) *float64 { return &r.RestartS })
	octets := figure("octets_each", func(r *benchFlowsRound) *float64 { return &r.Octets })
	figure("empty_start_s", func(r *benchFlowsRound) *float64 { return &r.EmptyS })
	figure("added_cpu_s", func(r *benchFlowsRound) *float64 { return &r.CPUS })
	if r.Entries == benchFlowsMost {
		r.Marks = []benchMark{
			newBenchMark("added, s", added, 5), newBenchMark("listed, s", listed, 2), newBenchMark("restart, s", restart, 2),
			newBenchMark("memory of each, octets", octets, 1024),
		}
	}
}

// write prints the figures.
func (r *benchFlows) write(w io.Writer, output string) error {
	if output == "json" {
		return benchJSON(w, r)
	}
	fmt.Fprintf(w, "%d flow entries, medians of %d rounds\n", r.Entries, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tMEDIAN\t95 %")
	for _, row := range []struct {
		what, name string
		v          float64
	}{
		{"added, s", "added_s", r.AddedS}, {"of it processor time of the controller, s", "added_cpu_s", r.CPUS}, {"listed, s", "listed_s", r.ListedS},
		{"restart, s", "restart_s", r.RestartS}, {"start without entries, s", "empty_start_s", r.EmptyS}, {"memory of each, octets", "octets_each", r.Octets},
	} {
		fmt.Fprintf(t, "%s\t%.2f\t%s\n", row.what, row.v, r.CI95.text(row.name, benchTwo))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range r.Marks {
		fmt.Fprintln(w, m)
	}
	return r.writeTaken(w)
}
