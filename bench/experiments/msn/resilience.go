package msn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/test/testbed"
)

// What the resilience test is made of.
const (
	rate        = 2000 // packet-ins per second
	sourceDPID  = 0x5eed
	sourceHosts = 260 // at sourcePorts: 63,000 flows
	sourcePorts = 16
	pingEvery   = 5 * time.Millisecond // on the data plane
	patience    = 15 * time.Second     // for an answer, after the last packet-in
)

// span is how long the flow lasts and when the worker is killed.
type span struct{ total, kill time.Duration }

func spanOf(quick bool) span {
	if quick {
		return span{8 * time.Second, 3 * time.Second}
	}
	return span{12 * time.Second, 5 * time.Second}
}

// The kinds of samples: a message on the control plane or on the data plane
// with its delay (empty if it was not answered), what happened and when, and
// counts.
const (
	kindControl   = "control"
	kindData      = "data"
	kindKilled    = "killed"
	kindRestarted = "restarted"
	kindShed      = "shed"
	kindDuplicate = "duplicates"
)

func resilience() experiments.Experiment {
	return experiments.Experiment{
		Name: "msn-resilience", Title: "the routing worker killed under a constant flow of packets",
		Paper: paper, Figure: "Fig. 10",
		Claim: `While the routing service goes down and a new instance takes over, no message is lost; the average delay of
messages shows small glitches only, on the control plane and on the data plane. A monolithic controller cannot react. (The
figure's own numbers are not in its text.)`,
		Method: fmt.Sprintf(`A simulated switch sends %d packet-ins a second, each the first of a flow between two of %d hosts, to a
controller of four processes (southbound | discovery, hosts | paths, forwarding | northbound). In the middle the routing
process (paths, forwarding) is killed with SIGKILL; the supervisor starts it again. The delay of a message on the control
plane is from when it was due to when the packet came back; on the data plane, the round trip of a ping every %v between H1
and H10 over the five real switches of Fig. 8, of a flow that is established. Shed is what the controller's own counters say.
Lost is sent less answered less shed. Recovery is from the start of the new process until no answer is late any more.`,
			rate, sourceHosts, pingEvery),
		Deviation: `The paper's orchestrator starts a second instance before the first has gone; here the process is killed without notice
and started again by the supervisor. Packet-ins wait meanwhile, so the first of them takes as long as the outage, the next ones
less: a falling slope where the paper has a small peak. Established flows need no controller.`,
		Runs: 10, QuickRuns: 1, Transports: experiments.Transports(),
		Statements: []experiments.Statement{
			experiments.AtMost(paperValues.Number("Fig. 10", "messages lost", ""), 0).Said("no loss", "none"),
			experiments.Value(1, .25).OfRatio().Said("small glitches", "small glitches only: as before"),
		},
		Columns: []string{"kind", "at_s", "value"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			for _, transport := range p.Transports {
				list = append(list, experiments.Case{Name: transport, Setup: experiments.SetupOf(testbed.Split("", transport, 1), fmt.Sprintf("%d packet-ins/s and pings", rate)), Open: func(_ context.Context, c *experiments.Context) (experiments.Subject, error) {
					return experiments.Once(func(ctx context.Context, round int) ([][]string, error) {
						return killRouting(ctx, c, transport, uint64(round))
					}), nil
				}})
			}
			return list
		},
		Sum: sumResilience,
	}
}

// killRouting is one run; it returns its samples.
func killRouting(ctx context.Context, c *experiments.Context, transport string, round uint64) (rows [][]string, err error) {
	s, err := open(ctx, transport, testbed.Split("msn-"+transport, transport, 1), topology.MSNFig8())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	source, err := testbed.Connect(ctx, testbed.SourceConfig{
		Address: s.OpenFlow[0], DPID: sourceDPID, Hosts: sourceHosts, Ports: sourcePorts, Seed: c.Seed + round,
	})
	if err != nil {
		return nil, s.Failed(err)
	}
	defer source.Close()
	if err := introduce(ctx, s, source); err != nil {
		return nil, s.Failed(err)
	}
	before, err := s.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	span := spanOf(c.Quick)
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	var pings []testbed.Echo
	pinged, killed := make(chan error, 1), make(chan error, 1)
	go func() {
		var err error
		pings, err = testbed.Echoes(run, s.lab, "h1", "h10", pingEvery, span.total)
		pinged <- err
	}()
	var events [][]string
	go func() {
		var err error
		events, err = killAndWatch(run, s, began, span.kill)
		killed <- err
	}()
	err = source.Send(run, int(span.total.Seconds()*rate), rate)
	if err == nil {
		err = source.Settle(run, patience)
	}
	if err != nil {
		cancel()
	}
	if err = errors.Join(err, <-killed, <-pinged); err != nil {
		return nil, s.Failed(err)
	}
	after, err := s.Metrics(ctx)
	if err != nil {
		return nil, s.Failed(err)
	}
	messages, duplicates := source.Messages()
	for _, m := range messages {
		row := []string{kindControl, at(m.Due.Sub(began)), ""}
		if !m.Answered.IsZero() {
			row[2] = written(milliseconds(m.Delay()))
		}
		rows = append(rows, row)
	}
	for _, p := range pings {
		row := []string{kindData, at(p.Sent.Sub(began)), ""}
		if p.RTT > 0 {
			row[2] = written(milliseconds(p.RTT))
		}
		rows = append(rows, row)
	}
	rows = append(rows, events...)
	return append(rows,
		[]string{kindShed, "", strconv.Itoa(shed(before, after))},
		[]string{kindDuplicate, "", strconv.Itoa(duplicates)}), nil
}

// introduce lets all hosts of the source speak and one flow cross the real
// switches, and warms up.
func introduce(ctx context.Context, s *site, source *testbed.Source) error {
	select { // discovery takes a while to say that a port has hosts
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Second):
	}
	if err := source.Announce(ctx, 150); err != nil {
		return err
	}
	if _, err := s.lab.Ping(ctx, "h1", "h10", traffic.PingOptions{Count: 20, Interval: 50 * time.Millisecond}); err != nil {
		return err
	}
	if err := source.Send(ctx, rate, rate); err != nil {
		return err
	}
	if err := source.Settle(ctx, 5*time.Second); err != nil {
		return err
	}
	messages, _ := source.Messages()
	if i := slices.IndexFunc(messages, func(m testbed.Message) bool { return m.Answered.IsZero() }); i >= 0 {
		return fmt.Errorf("packet-in %d of %d is not answered before anything has failed", i+1, len(messages))
	}
	source.Forget()
	return nil
}

// killAndWatch kills the routing worker at a time and waits until there is a
// new one.
func killAndWatch(ctx context.Context, s *site, began time.Time, after time.Duration) ([][]string, error) {
	old, err := routing(ctx, s)
	if err != nil {
		return nil, err
	}
	if backoff.Sleep(ctx, time.Until(began.Add(after))) != nil {
		return nil, ctx.Err()
	}
	when := time.Now()
	if err := syscall.Kill(old.PID, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("kill worker %s, process %d: %w", old.Name, old.PID, err)
	}
	rows := [][]string{{kindKilled, at(when.Sub(began)), strconv.Itoa(old.PID)}}
	last := errors.New("it is not listed")
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if backoff.Sleep(ctx, 100*time.Millisecond) != nil {
			return nil, ctx.Err()
		}
		now, err := routing(ctx, s)
		if err != nil {
			last = err
			continue
		}
		if now.PID == old.PID {
			last = fmt.Errorf("process %d is still listed", old.PID)
			continue
		}
		started, err := testbed.StartTime(now.PID)
		if err != nil {
			last = err
			continue
		}
		if started.Before(when) { // it is known to a hundredth of a second
			started = when
		}
		return append(rows, []string{kindRestarted, at(started.Sub(began)), strconv.Itoa(now.PID)}), nil
	}
	return nil, fmt.Errorf("worker %s was killed and no new one has come within %v: %w", old.Name, patience, last)
}

// routing returns the instance that runs forwarding.
func routing(ctx context.Context, s *site) (testbed.Instance, error) {
	workers, err := s.Workers(ctx)
	if err != nil {
		return testbed.Instance{}, err
	}
	for _, w := range workers {
		if w.PID > 0 && slices.Contains(w.Services, "forwarding") {
			return w, nil
		}
	}
	return testbed.Instance{}, errors.New("no worker runs forwarding")
}

// shed returns how many packets the controller says it has shed between two
// readings of its metrics. A counter that went back was that of a process that
// was killed.
func shed(before, after map[string]float64) int {
	sum := 0.0
	for _, name := range []string{"weft_deploy_packets_shed_total", "weft_southbound_messages_shed_total", "weft_southbound_packets_shed_total", "weft_forwarding_packets_shed_total"} {
		if d := after[name] - before[name]; d >= 0 {
			sum += d
		} else {
			sum += after[name]
		}
	}
	return int(sum)
}

// at writes a time since the beginning, in seconds.
func at(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 4, 64) }
