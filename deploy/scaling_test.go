package deploy_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

const autoscaledPlan = `{name: a, events: grpc, workers: {other: {services: [idle]}, switches: {services: [southbound]},
  stages: {services: [discovery, hosts, firewall, forwarding], autoscale: {max: 3, target: 10ms, cooldown: 1s}}}}`

// TestScaling has the number of replicas follow a load, with the death of the
// process that decides, and a plan of an operator, in between.
func TestScaling(t *testing.T) {
	setup := stageSetup()
	setup["hosts"] = func(p *actor) {
		weft.Stage(p.env, func(sw flow.DPID) weft.StageFunc {
			return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
				time.Sleep(2 * time.Millisecond)
				d.PacketOut(sw, flow.PacketOut{BufferID: 1, Data: append([]byte(nil), in.Data...)})
				return flow.Next
			}
		})
	}
	c := newCluster(t, staged(), setup)
	c.apply(autoscaledPlan)
	c.startAll()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var followed atomic.Int64
	go c.process("other").node.FollowScaling(ctx, func(*api.ScalingDecision) { followed.Add(1) })
	s := open(c.run("southbound"), 1)
	node := c.process("switches").node
	replicas := func() int {
		current, _, err := c.directory().Current(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return current.InForce().Worker("stages").Replicas
	}
	c.eventually("there are more replicas under load", func() bool {
		s.send(16)
		time.Sleep(8 * time.Millisecond)
		c.reconcile()
		return replicas() > 1
	})
	m, err := node.GetScaling(ctx, &api.GetScalingRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Process != "other" || len(m.Workers) != 1 || len(m.Decisions) == 0 {
		t.Fatalf("%+v, want a decision by the process other", m)
	}
	if w := m.Workers[0]; w.Worker != "stages" || w.Min != 1 || w.Max != 3 || w.Wanted < 2 || w.TargetUs != 10_000 || w.Taken == "" {
		t.Errorf("%+v", w)
	}
	if d := m.Decisions[0]; d.From != 1 || d.To < 2 || d.Reason == "" || d.Error != "" || followed.Load() == 0 {
		t.Errorf("%+v, %d were followed", d, followed.Load())
	}
	if got := c.process("other").metric(t, "weft_scaler_wanted", "stages"); got < 2 {
		t.Errorf("weft_scaler_wanted is %v", got)
	}
	work, err := node.GetWork(ctx, &api.GetWorkRequest{})
	if err != nil || len(work.Processes) < 3 {
		t.Fatalf("%v, %v", work, err)
	}

	c.kill(c.process("other")) // another decides now; the load is gone
	c.eventually("another process decides, and replicas go one by one", func() bool {
		m, err := node.GetScaling(ctx, &api.GetScalingRequest{})
		return err == nil && m.Process == "switches" && replicas() == 1
	})
	m, err = node.GetScaling(ctx, &api.GetScalingRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Decisions[0]; d.From != 1 {
		t.Errorf("the first decision that is remembered is %+v, want the one of the process that has died", d)
	}
	rising := 0
	for _, d := range m.Decisions {
		if d.To > d.From {
			rising++
			continue
		}
		if d.To+1 != d.From || !strings.Contains(d.Reason, "would have done for 1s") {
			t.Errorf("%+v, want one fewer after the cooldown", d)
		}
	}
	if rising == 0 {
		t.Errorf("%+v, want those of the process that has died, too", m.Decisions)
	}
	c.eventually("every packet is answered", func() bool { return s.answered() >= s.sent })

	fixed := strings.Replace(autoscaledPlan, ", autoscale: {max: 3, target: 10ms, cooldown: 1s}", "", 1)
	if _, err := node.ApplyPlan(ctx, &api.ApplyPlanRequest{Text: fixed}); err != nil {
		t.Fatal(err)
	}
	c.eventually("nothing is autoscaled", func() bool {
		m, err := node.GetScaling(ctx, &api.GetScalingRequest{})
		return err == nil && len(m.Workers) == 0 && c.process("switches").metric(t, "weft_scaler_wanted", "stages") == 0
	})
}

// TestNoFigures: while a replica does not answer, the number of replicas stays,
// and the reason is that the figures are old.
func TestNoFigures(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply(autoscaledPlan)
	c.startAll()
	node := c.process("switches").node
	c.eventually("there are figures", func() bool {
		m, err := node.GetScaling(t.Context(), &api.GetScalingRequest{})
		return err == nil && len(m.Workers) == 1 && m.Workers[0].Taken != "" && m.Workers[0].Ready == 1
	})
	c.process("stages").gate.freeze()
	defer c.process("stages").gate.thaw()
	c.eventually("the figures are old", func() bool {
		m, err := node.GetScaling(t.Context(), &api.GetScalingRequest{})
		return err == nil && len(m.Workers) == 1 && strings.Contains(m.Workers[0].Reason, "nothing is done by figures older than 5s")
	})
}
