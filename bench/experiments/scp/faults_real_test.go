package scp

import (
	"os"
	"testing"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/lab/keeper"
)

func TestMain(m *testing.M) {
	keeper.RunIfAsked()
	status := m.Run()
	testprogram.Remove()
	os.Exit(status)
}

// TestScpFaults: each fault of a 5G core, in one process and with every service in
// its own, costs what it may at most: requests of pairs that it is not about go on,
// and discovery answers again.
func TestScpFaults(t *testing.T) {
	t.Parallel()
	for _, plan := range []string{"single", "split"} {
		t.Run(plan, func(t *testing.T) {
			t.Parallel()
			err := Faults(t.Context(), testprogram.WithBench(t), plan, func(o Outcome) {
				t.Run(o.Fault, func(t *testing.T) {
					t.Logf("%d requests, %d failed, %d pairs broken; discovery answers after %v", o.Sent, o.Failed, o.Broken, o.Answers)
					if o.Wrong != "" {
						t.Error(o.Wrong)
					}
				})
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
