package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/machine"
)

// orphanNamed returns what Orphans says of one lab.
func orphanNamed(t *testing.T, name string) (Orphan, bool) {
	t.Helper()
	all, err := Orphans()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(o Orphan) bool { return o.Lab == name })
	if i < 0 {
		return Orphan{}, false
	}
	return all[i], true
}

// makeElsewhere makes a lab in another process, which ends.
func makeElsewhere(t *testing.T, name, lasting string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMakerToBeKilled$")
	cmd.Env = append(os.Environ(), "WEFT_TEST_MAKER="+name, "WEFT_TEST_LASTING="+lasting)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	t.Cleanup(func() {
		if err := Down(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	name := func(s string) string { return fmt.Sprintf("t%d-%s", os.Getpid(), s) }
	mine := upForTest(t, standalone(linear(t, 1, 1)), Options{})
	makeElsewhere(t, name("kept"), "")
	makeElsewhere(t, name("temporary"), "no")
	makeElsewhere(t, name("lost"), "")
	lost := machine.LabNetns(name("lost"))
	if err := os.RemoveAll(machine.Dir(name("lost"))); err != nil {
		t.Fatal(err)
	}
	for _, ns := range lost { // as a user would, who tidies up by hand
		if err := (machine.Home{}).DeleteNetns(ns); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []struct{ lab, why string }{
		{mine.Name(), ""}, {name("kept"), ""},
		{name("temporary"), "which has ended"}, {name("lost"), "its directory is gone"},
	} {
		o, ok := orphanNamed(t, v.lab)
		if ok != (v.why != "") || !strings.Contains(o.Why, v.why) {
			t.Errorf("lab %s: orphan %v, %q; want %q", v.lab, ok, o.Why, v.why)
		}
		if ok && len(o.Processes) < 3 { // two daemons and the keeper
			t.Errorf("lab %s: processes %v", v.lab, o.Processes)
		}
	}
	for _, lab := range []string{name("temporary"), name("lost")} {
		if err := Down(t.Context(), lab); err != nil {
			t.Error(err)
		}
		wantNothing(t, lab)
		if _, ok := orphanNamed(t, lab); ok {
			t.Errorf("lab %s is still an orphan", lab)
		}
	}
}
