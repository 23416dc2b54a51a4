package command

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// weft size answers with the best deployment and the curve that it is from.
func TestSize(t *testing.T) {
	run := func(args ...string) (status int, out, errs string) {
		var stdout, stderr bytes.Buffer
		status = Main(append([]string{"size"}, args...), &stdout, &stderr)
		return status, stdout.String(), stderr.String()
	}
	status, out, errs := run("--rate", "970", "--service", "0.6ms", "--idle", "0.248ms", "--target", "1ms", "--instances", "1,2,4", "-o", "json")
	var answer struct {
		Best struct {
			N    int
			As   string
			CPUs int
		}
		Met   bool
		Curve []struct {
			N           int     `json:"n"`
			As          string  `json:"as"`
			CPUs        int     `json:"cpus"`
			FormulaMS   float64 `json:"formula_ms"`
			SimulatedMS float64 `json:"simulated_ms"`
			CIMS        float64 `json:"ci_ms"`
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); status != 0 || err != nil {
		t.Fatalf("status %d, %v, %q", status, err, errs)
	}
	if b := answer.Best; !answer.Met || b.N != 2 || b.As != "copies" || b.CPUs != 1 || len(answer.Curve) != 9 {
		t.Errorf("%+v", answer)
	}
	for _, p := range answer.Curve {
		if !(p.CIMS > 0 && math.Abs(p.FormulaMS-p.SimulatedMS) < 0.06*p.SimulatedMS) {
			t.Errorf("%+v", p)
		}
	}
	addBenchToPath(t)
	dir := t.TempDir()
	profile, plot := filepath.Join(dir, "profile.yaml"), filepath.Join(dir, "curve.svg")
	text := "measured: {seconds: 1, switches: 1, packet_ins: 20000}\nservices:\n  forwarding: {per_packet: 40us}\n  paths: {per_packet: missing}\n"
	if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, out, errs = run("--profile", profile, "--of", "forwarding", "--formula", "--target", "100us", "--plot", plot); status != 0 || !strings.Contains(out, "best") {
		t.Errorf("a profile: status %d, %q, %q", status, out, errs)
	}
	if drawn, err := os.ReadFile(plot); err != nil || !strings.Contains(string(drawn), "<svg") {
		t.Errorf("plot: %v", err)
	}
	if status, out, _ = run("--rate", "970", "--service", "0.6ms", "--target", "1us", "--formula", "-o", "json"); status != 0 || !strings.Contains(out, `"met": false`) {
		t.Errorf("an unreachable target: status %d, %q", status, out)
	}
	if status, _, errs = run("--rate", "2000", "--service", "0.6ms", "--instances", "1"); status != 1 || !strings.Contains(errs, "2 copies on a processor each would carry it") {
		t.Errorf("overloaded: status %d, %q", status, errs)
	}
	for flags, want := range map[string]string{
		"":                                        "--rate is missing",
		"--rate 10":                               "--service is missing",
		"--rate -1 --service 1ms":                 "--rate -1: want 0",
		"--rate 10 --service -1ms":                "--service -0.001s: want 0s",
		"--rate 10 --service 1ms --idle 2ms":      "--idle 0.002s: want at most service",
		"--rate 10 --service 1ms --target 0s":     "--target 0s: want",
		"--rate 10 --service 1ms --cpus none":     `--cpus "none": want`,
		"--rate 10 --service 1ms --as mesh":       `--as "mesh": want copies or chain`,
		"--rate 10 --service 1ms --plot x.gif":    "ends in .svg",
		"--rate 10 --service 1ms --dispersion 5":  "want TIME=INDEX",
		"--rate 10 --service 1ms --overhead 5":    "want N:MS",
		"--rate 10 --service 1ms --overhead 4:-1": "--overhead 4:-1: want rising",
		"--rate 10 --service 1ms --of paths":      "give --profile",
		"--profile " + profile:                    "per_packet) is in " + profile + ": forwarding",
		"--profile " + profile + " --of paths":    "forwarding",
		"--profile " + profile + " --service 1ms": "give one of them",
	} {
		if status, _, errs := run(strings.Fields(flags)...); status != 2 || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, %q; want %s", flags, status, errs, want)
		}
	}
}
