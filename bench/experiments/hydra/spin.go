package hydra

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
)

// SpinVariable is the environment variable by which weft-bench, as hydra-map's
// controller, has the service spin.
const SpinVariable = "WEFT_EXPERIMENT_SPIN"

// spinConfig is the configuration of spin.
type spinConfig struct {
	// Cost is the processor time that each packet takes.
	Cost time.Duration `yaml:"cost"`
}

// Validate says which key is wrong and what it may be.
func (c *spinConfig) Validate() error {
	if c.Cost < 0 || c.Cost > 100*time.Millisecond {
		return fmt.Errorf("cost: %v: want 0 to 100ms", c.Cost)
	}
	return nil
}

// Spin declares a service whose stage computes for as long as it is told, and
// decides nothing.
func Spin() weft.Spec {
	return weft.Spec{
		Name: "spin", Doc: "computes for a while on each packet", Stage: true, Class: weft.Latency, Scale: weft.Any,
		Config: &spinConfig{}, Live: []string{"*"}, Run: runSpin,
	}
}

func runSpin(ctx context.Context, env *weft.Env) error {
	each := calibrate()
	var turns atomic.Int64
	set := func(c *spinConfig) { turns.Store(int64(float64(c.Cost.Nanoseconds()) / each)) }
	set(env.Config.(*spinConfig))
	weft.OnConfig(env, func(_ context.Context, _, c *spinConfig) error { set(c); return nil })
	weft.Stage(env, func(flow.DPID) weft.StageFunc {
		return func(*flow.PacketIn, *flow.Decision) flow.Verdict {
			runtime.KeepAlive(compute(turns.Load()))
			return flow.Next
		}
	})
	return weft.Serve(ctx, env)
}

// compute computes for a number of turns (xorshift, Marsaglia 2003).
//
//go:noinline
func compute(turns int64) uint64 {
	x := uint64(turns) | 1
	for range turns {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// calibrate returns how many ns a turn takes: the least of several tries, which
// is that without what the machine was doing beside.
func calibrate() float64 {
	const turns = 1 << 20
	least := time.Hour
	for range 10 {
		began := time.Now()
		runtime.KeepAlive(compute(turns))
		least = min(least, time.Since(began))
	}
	return float64(least.Nanoseconds()) / turns
}
