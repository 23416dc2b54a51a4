package nf

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/test/testbed"
)

// What is scaled.
const (
	scaledWorker   = "routing"
	scaledQuota    = 0.05 // of a processor, of each replica
	scaledMost     = 3
	scaledTarget   = 50 * time.Millisecond
	scaledCooldown = 8 * time.Second

	sourceDPID = 0x5ca1e
	sources    = 6                // simulated switches, which two or three replicas share evenly
	patience   = 20 * time.Second // for an answer, after the last packet-in
)

// autoscaledPlan is a controller whose routing is scaled, by itself if how says
// how.
func autoscaledPlan(how string) *testbed.Plan {
	return &testbed.Plan{
		Name: "nf-autoscale", Transport: "grpc", Balance: "switch",
		Config: map[string]map[string]string{"forwarding": {"mode": "learning"}},
		Workers: []testbed.Worker{
			{Name: "switches", Services: []string{"southbound", "discovery", "hosts"}},
			{Name: scaledWorker, Services: []string{"paths", "forwarding"}, CPUQuota: scaledQuota, Autoscale: how},
			{Name: "rest", Services: []string{"flowrules", "stats", "gateway"}},
		},
	}
}

// modelScaler is the autoscale of the plan; with a season it forecasts.
func modelScaler(season time.Duration) string {
	s := fmt.Sprintf("{min: 1, max: %d, target: %v, percentile: 99, cooldown: %v", scaledMost, scaledTarget, scaledCooldown)
	if season > 0 {
		s += fmt.Sprintf(", season: %v", season)
	}
	return s + "}"
}

// bed is a controller under load.
type bed struct {
	*testbed.Controller
	gateway api.GatewayClient
	sources []*testbed.Source
	scaler  *threshold // nil: the controller scales itself
	before  map[uint64]float64
}

// play runs a load under a scaler and returns a row for each second of the last
// period.
func play(ctx context.Context, c *experiments.Context, s shape, scaler string, round int) (rows [][]string, err error) {
	rates := s.rates(c.Seed+uint64(round), c.Quick)
	b := &bed{before: map[uint64]float64{}}
	how, periods := "", 1
	switch scaler {
	case scalerModel:
		how = modelScaler(0)
	case scalerForecast: // it has to see a whole season before
		how, periods = modelScaler(s.period(c.Quick)), 2
	default:
		b.scaler = tuned(rates)
	}
	if b.Controller, err = testbed.Start(ctx, testbed.Config{Plan: autoscaledPlan(how), CPU: -1}); err != nil {
		return nil, err
	}
	defer b.Stop()
	conn, err := b.Northbound()
	if err != nil {
		return nil, b.Failed(err)
	}
	b.gateway = api.NewGatewayClient(conn)
	sum := 0
	for _, r := range rates {
		sum += r
	}
	defer func() {
		for _, source := range b.sources {
			source.Close()
		}
	}()
	for i := range sources {
		source, err := testbed.Connect(ctx, testbed.SourceConfig{
			Address: b.OpenFlow[0], DPID: sourceDPID + flow.DPID(i), Hosts: hostsFor(periods*sum/sources + warmUp), Ports: sourcePorts, Seed: c.Seed + uint64(round),
		})
		if err != nil {
			return nil, b.Failed(err)
		}
		b.sources = append(b.sources, source)
	}
	if err := b.introduce(ctx); err != nil {
		return nil, b.Failed(err)
	}
	for range periods {
		for _, source := range b.sources {
			source.Forget()
		}
		if rows, err = b.period(ctx, rates); err != nil {
			return nil, b.Failed(err)
		}
	}
	return rows, nil
}

// warmUp is how many packet-ins each switch sends before the load.
const warmUp = 100

// each calls f for all switches at once.
func (b *bed) each(f func(*testbed.Source) error) error {
	var all errgroup.Group
	for _, source := range b.sources {
		all.Go(func() error { return f(source) })
	}
	return all.Wait()
}

// introduce lets all hosts speak, and warms up until there is one replica.
func (b *bed) introduce(ctx context.Context) error {
	if err := backoff.Sleep(ctx, 2*time.Second); err != nil { // discovery takes a while to say that a port has hosts
		return err
	}
	err := b.each(func(source *testbed.Source) error {
		err := source.Announce(ctx, lowRate)
		if err == nil {
			err = source.Send(ctx, warmUp, lowRate/sources)
		}
		if err == nil {
			err = source.Settle(ctx, patience)
		}
		return err
	})
	if err != nil {
		return err
	}
	for until := time.Now().Add(time.Minute); ; {
		n, _, err := b.look(ctx)
		if err == nil && n == 1 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("there are %d replicas of %s before the load, want 1 (%v)", n, scaledWorker, err)
		}
		if err := backoff.Sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

// look returns how many replicas there are, ready or not, and the processor time
// that those have used that are, by run.
func (b *bed) look(ctx context.Context) (replicas int, used map[uint64]float64, err error) {
	resp, err := b.gateway.GetWork(ctx, &api.GetWorkRequest{})
	if err != nil {
		return 0, nil, err
	}
	used = map[uint64]float64{}
	for _, p := range resp.Processes {
		if p.Worker != scaledWorker {
			continue
		}
		replicas++
		if p.Ready {
			used[p.Run] = p.CpuSeconds
		}
	}
	return replicas, used, nil
}

// period plays a period and returns a row for each second.
func (b *bed) period(ctx context.Context, rates []int) ([][]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	counts := make(chan []float64, 1)
	failed := make(chan error, 1)
	go func() {
		list, err := b.follow(ctx, began, len(rates))
		counts <- list
		failed <- err
	}()
	var err error
	for i, r := range rates {
		if err = backoff.Sleep(ctx, time.Until(began.Add(time.Duration(i)*time.Second))); err != nil {
			break
		}
		if err = b.each(func(source *testbed.Source) error { return source.Send(ctx, r/sources, float64(r)/sources) }); err != nil {
			break
		}
	}
	if err == nil {
		err = b.each(func(source *testbed.Source) error { return source.Settle(ctx, patience) })
	}
	if err != nil {
		cancel()
	}
	replicas := <-counts
	if err = errors.Join(err, <-failed); err != nil {
		return nil, err
	}
	var messages []testbed.Message
	for _, source := range b.sources {
		list, _ := source.Messages()
		messages = append(messages, list...)
	}
	return seconds(began, messages, replicas), nil
}

// seconds sums messages up by the second in which they were due.
func seconds(began time.Time, messages []testbed.Message, replicas []float64) (rows [][]string) {
	sent, late, lost := make([]int, len(replicas)), make([]int, len(replicas)), make([]int, len(replicas))
	for _, m := range messages {
		i := min(max(0, int(m.Due.Sub(began)/time.Second)), len(replicas)-1)
		sent[i]++
		switch {
		case m.Answered.IsZero():
			lost[i]++
			late[i]++
		case m.Delay() > scaledTarget:
			late[i]++
		}
	}
	for i, n := range replicas {
		rows = append(rows, []string{strconv.Itoa(i), strconv.Itoa(sent[i]), strconv.Itoa(late[i]), strconv.Itoa(lost[i]), strconv.FormatFloat(n, 'f', 2, 64)})
	}
	return rows
}

// follow looks at the replicas each second, and scales them if the controller
// does not. It returns how many there were in each second.
func (b *bed) follow(ctx context.Context, began time.Time, length int) (list []float64, err error) {
	last, replicas := began, 1
	for i := range length {
		if err := backoff.Sleep(ctx, time.Until(began.Add(time.Duration(i+1)*time.Second))); err != nil {
			return list, err
		}
		n, used, err := b.look(ctx)
		if err != nil {
			return list, err
		}
		now := time.Now()
		list = append(list, float64(n))
		if b.scaler != nil && len(used) > 0 {
			sum, count := 0.0, 0
			for run, cpu := range used {
				if before, ok := b.before[run]; ok {
					sum += (cpu - before) / now.Sub(last).Seconds() / scaledQuota
					count++
				}
			}
			if count > 0 {
				if want := b.scaler.decide(now.Sub(began), replicas, sum/float64(count)); want != replicas {
					if err := b.scale(ctx, want); err != nil {
						return list, err
					}
					replicas = want
				}
			}
		}
		b.before, last = used, now
	}
	return list, nil
}

// scale applies the plan with another number of replicas.
func (b *bed) scale(ctx context.Context, n int) error {
	now, err := b.gateway.GetPlan(ctx, &api.GetPlanRequest{})
	if err != nil {
		return err
	}
	p, err := plan.Parse("the plan in force", []byte(now.Text))
	if err != nil {
		return err
	}
	text, err := p.WithReplicas(scaledWorker, n).YAML()
	if err != nil {
		return err
	}
	_, err = b.gateway.ApplyPlan(ctx, &api.ApplyPlanRequest{Text: string(text), MadeFrom: now.Generation})
	return err
}
