package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/test/measure"
)

// benchNamed is a command with a name.
type benchNamed struct {
	Name    string `json:"name"`
	Command string `json:"command"`
}

// parseBenchNamed reads NAME=CMD.
func parseBenchNamed(text string) (benchNamed, error) {
	name, command, ok := strings.Cut(text, "=")
	if !ok || name == "" || command == "" || strings.ContainsAny(name, " /") {
		return benchNamed{}, fmt.Errorf("%q: want NAME=CMD", text)
	}
	return benchNamed{name, command}, nil
}

// benchPeersConfig is the flags of peers.
type benchPeersConfig struct {
	generators []benchNamed
	peers      []benchNamed
	weft       []string
	floor      bool
	switches   []int
	pin        []string
	against    string
	figure     *regexp.Regexp
	rounds     int
	settle     time.Duration
	timeout    time.Duration
	output     string
}

// benchCbenchFigure finds the average in cbench's last line.
const benchCbenchFigure = `RESULT: .* = [0-9.]+/[0-9.]+/([0-9.]+)/`

func benchPeersCommand() *cobra.Command {
	var c benchPeersConfig
	var generators, peers []string
	var figure string
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "Measure Weft beside other controllers with another's generator",
		Long: `Measure Weft and other controllers that are on this machine with a generator that
is not Weft's, such as cbench. In every round each controller is started anew,
the generator runs against it once, and it is stopped; rounds take the
controllers forwards and backwards in turn, so that a machine that changes
favours none. Each is measured as it is and with generator and controller pinned
to a processor each (--pin).

Weft takes part twice: as a learning switch (weft), which is what others' learning
switches compare with, and with all its services (weft-all); so does the floor,
which does the least possible. Figures are medians over the rounds with 95 %
intervals; a ratio is the median of the ratios within rounds, to --against.

In commands {port} stands for where the controller listens, on 127.0.0.1, and
{switches} for the number of switches. Commands are run by sh. The figure is what
--figure, a regular expression, has in parentheses where it matches last in what
the generator prints. A controller that fails is told, and does not end the
others.`,
		Example: `  weft bench peers --generator 'cbench -c 127.0.0.1 -p {port} -s {switches} -t -D 1000' --peer 'ovs=ovs-testcontroller --unixctl=none ptcp:{port}:127.0.0.1' --switches 8
  weft bench peers --generator 'throughput=cbench -c 127.0.0.1 -p {port} -s {switches} -t -D 1000' --generator 'latency=cbench -c 127.0.0.1 -p {port} -s {switches} -D 1000' --peer 'libfluid=./raw_controller l2 {port}' --switches 1,16 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.parse(generators, peers, figure)
			if err == nil {
				err = c.check()
			}
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return benchRunPeers(ctx, c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&generators, "generator", nil, "CMD or NAME=CMD: what plays the switches; {port} and {switches} are replaced; may be repeated")
	f.StringArrayVar(&peers, "peer", nil, "NAME=CMD: starts a controller; {port} is replaced; may be repeated")
	f.StringSliceVar(&c.weft, "weft", []string{"learning", "all"}, "what of Weft takes part: learning, all, none")
	f.BoolVar(&c.floor, "floor", true, "measure the floor, too (weft bench floor)")
	f.IntSliceVar(&c.switches, "switches", []int{16}, "numbers of switches")
	f.StringSliceVar(&c.pin, "pin", []string{"no", "yes"}, "measure controllers as they are (no), on a processor of their own (yes), or both")
	f.StringVar(&c.against, "against", "", "the controller that ratios are to (default: the first --peer, else the floor)")
	f.StringVar(&figure, "figure", benchCbenchFigure, "regular expression that finds answers/s in the generator's output")
	f.IntVar(&c.rounds, "rounds", 10, "rounds; the report gives medians")
	f.DurationVar(&c.settle, "settle", time.Second, "how long a controller that accepts connections is left alone before the generator starts")
	f.DurationVar(&c.timeout, "timeout", 2*time.Minute, "of one run of the generator")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	return cmd
}

// parse reads the commands.
func (c *benchPeersConfig) parse(generators, peers []string, figure string) (err error) {
	for i, text := range generators {
		g, err := parseBenchNamed(text)
		if err != nil { // a command without a name
			g = benchNamed{"generator " + strconv.Itoa(i+1), text}
		}
		c.generators = append(c.generators, g)
	}
	for _, text := range peers {
		p, err := parseBenchNamed(text)
		if err != nil {
			return fmt.Errorf("--peer %w", err)
		}
		c.peers = append(c.peers, p)
	}
	if c.figure, err = regexp.Compile(figure); err != nil {
		return fmt.Errorf("--figure: %w", err)
	}
	return nil
}

// check says which flag is wrong.
func (c *benchPeersConfig) check() error {
	if len(c.generators) == 0 {
		return errors.New("--generator: want the command of a generator, such as 'cbench -c 127.0.0.1 -p {port} -s {switches} -t'")
	}
	for _, g := range c.generators {
		if !strings.Contains(g.Command, "{port}") {
			return fmt.Errorf("--generator %q: want a command with {port} where the controller's port goes", g.Command)
		}
	}
	if len(c.weft) > 1 && slices.Contains(c.weft, "none") {
		return errors.New("--weft: none goes with nothing else")
	}
	for _, w := range c.weft {
		if w != "learning" && w != "all" && w != "none" {
			return fmt.Errorf("--weft %q: want learning, all or none", w)
		}
	}
	for _, p := range c.peers {
		if !strings.Contains(p.Command, "{port}") {
			return fmt.Errorf("--peer %q: want a command with {port} where the port goes that it is to listen on", p.Name)
		}
	}
	names := c.names()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("--peer %q: there are two of this name", name)
		}
	}
	switch {
	case len(names) == 0:
		return errors.New("--peer: nothing is left to be measured")
	case c.against == "" && len(c.peers) > 0:
		c.against = c.peers[0].Name
	case c.against == "":
		c.against = names[0]
	case !slices.Contains(names, c.against):
		return fmt.Errorf("--against %q: want one of %s", c.against, strings.Join(names, ", "))
	}
	for _, n := range c.switches {
		if n < 1 {
			return fmt.Errorf("--switches %d: want at least 1", n)
		}
	}
	for _, p := range c.pin {
		if p != "no" && p != "yes" {
			return fmt.Errorf("--pin %q: want no, yes, or both (no,yes)", p)
		}
	}
	switch {
	case c.figure.NumSubexp() != 1:
		return fmt.Errorf("--figure %q: want one pair of parentheses around the figure", c.figure)
	case c.rounds < 1:
		return fmt.Errorf("--rounds %d: want at least 1", c.rounds)
	case c.settle < 0 || c.timeout <= 0:
		return errors.New("--settle and --timeout: want times that are not negative")
	case len(c.switches) == 0 || len(c.pin) == 0:
		return errors.New("--switches and --pin: want at least one each")
	}
	return benchCheckOutput(c.output)
}

// names are those of all that is measured.
func (c *benchPeersConfig) names() (names []string) {
	if c.floor {
		names = append(names, "floor")
	}
	for _, w := range c.weft {
		switch w {
		case "learning":
			names = append(names, "weft")
		case "all":
			names = append(names, "weft-all")
		}
	}
	for _, p := range c.peers {
		names = append(names, p.Name)
	}
	return names
}

// benchPeerRow is one controller under one load.
type benchPeerRow struct {
	Generator   string    `json:"generator"`
	Switches    int       `json:"switches"`
	Pinned      bool      `json:"pinned"`
	Controller  string    `json:"controller"`
	AnswersPerS float64   `json:"answers_per_s"` // median
	Ratio       float64   `json:"ratio"`         // to Report.Against, median of the rounds' ratios; 0 if it has none
	CI95        benchCI95 `json:"ci95"`
	CPU         float64   `json:"cpu_percent"` // of one processor, median
	Memory      int64     `json:"memory_bytes"`
	Rounds      []float64 `json:"rounds"`
	Failed      []string  `json:"failed,omitempty"` // what went wrong, a line for each round
}

// benchPeers is what peers prints.
type benchPeers struct {
	benchTaken
	Generators []benchNamed    `json:"generators"`
	Peers      []benchNamed    `json:"peers"`
	Against    string          `json:"against"`
	Rows       []*benchPeerRow `json:"rows"`
}

// benchRunPeers is `weft bench peers`.
func benchRunPeers(ctx context.Context, c benchPeersConfig, out, progress io.Writer) error {
	r := &benchPeers{Generators: c.generators, Peers: c.peers, Against: c.against}
	r.begin()
	for _, pin := range c.pin {
		if err := c.measure(ctx, r, pin == "yes", progress); err != nil {
			return err
		}
	}
	r.end()
	if err := r.write(out, c.output); err != nil {
		return err
	}
	return r.failed()
}

// measure takes all rounds, pinned or not.
func (c *benchPeersConfig) measure(ctx context.Context, r *benchPeers, pinned bool, progress io.Writer) error {
	cpus, undo, err := benchPin(!pinned)
	if err != nil {
		return err
	}
	defer undo()
	if pinned {
		r.Conditions.Also(cpus.differs()...)
	}
	names := c.names()
	for _, generator := range c.generators {
		for _, switches := range c.switches {
			rows := make([]*benchPeerRow, len(names))
			cpu := make([][]float64, len(names))
			for i, name := range names {
				rows[i] = &benchPeerRow{Generator: generator.Name, Switches: switches, Pinned: pinned, Controller: name}
			}
			for round := range c.rounds {
				for _, i := range measure.Order(round, len(names)) {
					turn, err := c.turn(ctx, cpus, names[i], generator, switches)
					if ctx.Err() != nil {
						return ctx.Err()
					}
					line := fmt.Sprintf("round %d/%d, %s, %d switches, pinned %v, %s: ", round+1, c.rounds, generator.Name, switches, pinned, names[i])
					if err != nil {
						rows[i].Failed = append(rows[i].Failed, err.Error())
						line += err.Error()
					} else {
						cpu[i] = append(cpu[i], turn.cpu)
						rows[i].Memory = max(rows[i].Memory, turn.memory)
						line += benchCount(turn.answers) + " answers/s"
					}
					rows[i].Rounds = append(rows[i].Rounds, turn.answers) // NaN if it failed
					fmt.Fprintln(progress, line)
				}
			}
			r.add(rows, cpu)
		}
	}
	return nil
}

// benchTurn is one run of a generator against one controller.
type benchTurn struct {
	answers float64
	cpu     float64 // percent of one processor while the generator ran
	memory  int64
}

// turn starts a controller, lets the generator loose on it, and stops it.
func (c *benchPeersConfig) turn(ctx context.Context, cpus benchCPUs, name string, generator benchNamed, switches int) (t benchTurn, err error) {
	t.answers = nan
	s, port, err := c.start(ctx, cpus, name)
	if err != nil {
		return t, err
	}
	defer s.close()
	if backoff.Sleep(ctx, c.settle) != nil {
		return t, ctx.Err()
	}
	command := strings.NewReplacer("{port}", port, "{switches}", strconv.Itoa(switches)).Replace(generator.Command)
	before, began := s.child.CPUTime(), time.Now()
	said, err := benchShell(ctx, c.timeout, command)
	t.cpu = 100 * (s.child.CPUTime() - before).Seconds() / time.Since(began).Seconds()
	t.memory = benchMemory("VmRSS", s.child.All()...)
	if s.child.Ended() != nil {
		return t, s.child.Failed(errors.New("it ended while it was measured"))
	}
	if err != nil {
		return t, fmt.Errorf("generator: %w; it said: %s", err, benchLastLine(said))
	}
	found := c.figure.FindAllStringSubmatch(said, -1)
	if len(found) == 0 {
		return t, fmt.Errorf("--figure %q is nowhere in what the generator said, which ends in: %s", c.figure, benchLastLine(said))
	}
	if t.answers, err = strconv.ParseFloat(found[len(found)-1][1], 64); err != nil {
		return t, fmt.Errorf("--figure found no number: %w", err)
	}
	return t, nil
}

// start starts what has the name, and returns where it listens.
func (c *benchPeersConfig) start(ctx context.Context, cpus benchCPUs, name string) (s *benchSubject, port string, err error) {
	number, err := freeport.Port()
	if err != nil {
		return nil, "", err
	}
	port = strconv.Itoa(number)
	s = &benchSubject{name: name, address: "127.0.0.1:" + port}
	if i := slices.IndexFunc(c.peers, func(p benchNamed) bool { return p.Name == name }); i >= 0 {
		return s, port, s.start(ctx, cpus, "sh", "-c", "exec "+strings.ReplaceAll(c.peers[i].Command, "{port}", port))
	}
	if name == "floor" {
		self, err := companion.Find("weft")
		if err != nil {
			return nil, "", err
		}
		return s, port, s.start(ctx, cpus, self, "bench", "floor", "--listen", s.address)
	}
	http, err := freeport.Port()
	if err != nil {
		return nil, "", err
	}
	services := benchLearning
	if name == "weft-all" {
		services = benchAll
	}
	return s, port, s.startWeft(ctx, cpus, fmt.Sprintf("127.0.0.1:%d", http), services)
}

// add sums up the rows of one load.
func (r *benchPeers) add(rows []*benchPeerRow, cpu [][]float64) {
	base := slices.IndexFunc(rows, func(row *benchPeerRow) bool { return row.Controller == r.Against })
	for i, row := range rows {
		answers := measure.Median(benchNumbers(row.Rounds))
		ratio := measure.Ratio(row.Rounds, rows[base].Rounds)
		row.AnswersPerS, row.Ratio, row.CPU = benchNumber(answers.Median), benchNumber(ratio.Median), benchNumber(measure.Median(cpu[i]).Median)
		row.CI95 = benchCI95{"answers_per_s": answers.CI95, "ratio": ratio.CI95}
	}
	for _, row := range rows {
		row.Rounds = benchNumbers(row.Rounds)
	}
	r.Rows = append(r.Rows, rows...)
}

// failed says which controllers were not measured in every round.
func (r *benchPeers) failed() (err error) {
	for _, row := range r.Rows {
		if len(row.Failed) > 0 {
			err = errors.Join(err, fmt.Errorf("%s, %s, %d switches: %d of %d rounds failed: %s",
				row.Controller, row.Generator, row.Switches, len(row.Failed), len(row.Failed)+len(row.Rounds), row.Failed[0]))
		}
	}
	return err
}

// write prints the figures.
func (r *benchPeers) write(w io.Writer, output string) error {
	if output == "json" {
		return benchJSON(w, r)
	}
	for _, g := range r.Generators {
		fmt.Fprintf(w, "%s: %s\n", g.Name, g.Command)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "GENERATOR\tSWITCHES\tPINNED\tCONTROLLER\tANSWERS/S\t95 %%\tTO %s\t95 %%\tCPU %%\tMB\n", strings.ToUpper(r.Against))
	for _, row := range r.Rows {
		pinned := "no"
		if row.Pinned {
			pinned = "yes"
		}
		if len(row.Rounds) == 0 {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\tfailed\t\t\t\t\t\n", row.Generator, row.Switches, pinned, row.Controller)
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%.2f\t%s\t%.0f\t%d\n", row.Generator, row.Switches, pinned, row.Controller,
			benchCount(row.AnswersPerS), row.CI95.text("answers_per_s", benchCount), row.Ratio,
			row.CI95.text("ratio", benchTwo), row.CPU, row.Memory>>20)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeTaken(w)
}
