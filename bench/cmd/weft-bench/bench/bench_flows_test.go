package bench

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/weft-sdn/weft/internal/testprogram"
)

func TestFlowsAreMeasured(t *testing.T) {
	out, err := exec.Command(testprogram.WithBench(t), "bench", "flows", "--entries", "300", "--switches", "3", "--rounds", "2", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r benchFlows
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	if r.AddedS <= 0 || r.ListedS <= 0 || r.RestartS <= 0 || len(r.Detail) != 2 || len(r.CI95["added_s"]) != 0 /* two rounds have no interval */ || r.Conditions == nil || len(r.Marks) != 0 {
		t.Errorf("%s", out)
	}
}
