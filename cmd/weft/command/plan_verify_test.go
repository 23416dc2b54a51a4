package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/cmd/weft/verify"
	"github.com/weft-sdn/weft/internal/testwait"
)

// A controller that runs is compared with what was predicted of it.
func TestPlanVerify(t *testing.T) {
	r := startUp(t, run.UpOptions{})
	if status, _, errs := weftCommand("plan", "verify", "--seconds", "1"); status != 1 || !strings.Contains(errs, "no switch is connected") {
		t.Errorf("without switches: status %d, %s", status, errs)
	}
	_, hosts := connect(t, r)
	ctx, stop := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	t.Cleanup(func() { stop(); sending.Wait() })
	sending.Go(func() {
		for i := byte(1); ctx.Err() == nil; i = i%3 + 1 {
			hosts[i-1].Send(announce(i))
			time.Sleep(time.Millisecond)
		}
	})
	rows := map[string]verify.Row{}
	testwait.Until(t, "enough packets are counted", func() bool {
		status, out, errs := weftCommand("plan", "verify", "--seconds", "1", "-o", "json")
		var report verify.Report
		if err := json.Unmarshal([]byte(out), &report); err != nil || status > 1 {
			t.Fatalf("status %d, %v: %s", status, err, errs)
		}
		if differs := report.Differ > 0 || report.Compared == 0; differs != (status == 1) {
			t.Errorf("status %d where %d of %d differ", status, report.Differ, report.Compared)
		}
		for _, row := range report.Rows {
			rows[row.What] = row
		}
		return report.Switches == 3 && rows["packet-in: crossings"].Verdict == "within"
	})
	if row := rows["packet-in: crossings"]; *row.Predicted != 0 || *row.Measured != 0 {
		t.Errorf("in one process a packet-in crosses %v times, predicted %v", *row.Measured, *row.Predicted)
	}
	for _, what := range []string{"worker controller: processor", "worker controller: memory"} {
		if row := rows[what]; row.Predicted == nil || row.Measured == nil || *row.Measured <= 0 {
			t.Errorf("%s: %+v", what, row)
		}
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte("name: other\nworkers: {all: {services: [southbound, forwarding]}}\npartial: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"--seconds 0.5": "want 1 to 3600", "--margin 2": "want a share from 0 to 1", other: "is not the plan in force"} {
		if status, _, errs := weftCommand(append([]string{"plan", "verify"}, strings.Fields(args)...)...); status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s; want %s", args, status, errs, want)
		}
	}
}
