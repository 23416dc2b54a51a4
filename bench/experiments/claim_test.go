package experiments

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/test/measure"
)

func TestClaims(t *testing.T) {
	rest := Value(7, .25).OfRatio().Said("rest", "7 times")
	claims := []Claim{
		{Figure: "Fig. 9", What: "REST to WebSocket", Says: &rest, Ours: 1.75, CI95: []float64{1.2, 2}, Count: 8},
		Claim{What: "met", Ours: 2.5, CI95: []float64{2, 2.75}, Count: 6, Unit: "ms"}.AtMost(3),
		Claim{What: "missed", Unit: "/s"}.Exactly(1234.5).AtLeast(2000),
		Claim{What: "not measured", Paper: "about 10 ms", Value: 10, Ours: math.NaN()}.AtMost(3),
		{What: "a remark", Paper: "5 ms", Value: 5, Ours: 10, Count: 1},
	}
	var text, csv bytes.Buffer
	if err := writeText(&text, claims); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"FIGURE  WHAT               PAPER        TOLERANCE  WEFT     95 %       N  WEFT/PAPER  REPRODUCED?  MARK        MET?          CAUSE",
		"Fig. 9  REST to WebSocket  7 times      25 %       1.75     1.2 to 2   8  0.25        contradicts  -           -             not explained",
		"-       met                -            -          2.5 ms   2 to 2.75  6  -           -            <= 3 ms     met           -",
		"-       missed             -            -          1234 /s  -          -  -           -            >= 2000 /s  missed        -",
		"-       not measured       about 10 ms  -          none     -          -  -           -            <= 3        not measured  -",
		"-       a remark           5 ms         -          10       -          1  2           -            -           -             -", "",
	}, "\n")
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	if err := writeCSV(&csv, claims[:1]); err != nil {
		t.Fatal(err)
	}
	if got := csv.String(); !strings.HasSuffix(got, "\nFig. 9,REST to WebSocket,7 times,25 %,1.75,1.2 to 2,8,0.25,contradicts,-,-,not explained\n") {
		t.Errorf("got %q", got)
	}
	for i, want := range []string{
		`"figure":"Fig. 9","what":"REST to WebSocket","paper":"7 times","statement":{"name":"rest","says":"7 times","kind":"value","low":7,"high":7,"reproduced_from":5.25,"reproduced_to":8.75},` +
			`"tolerance":0.25,"ours":1.75,"ci95":[1.2,2],"n":8,"exact":false,"ratio":0.25,"reproduced":"contradicts","mark":null,"met":"-","cause":"not explained"`,
		`"mark":{"at_most":3},"met":"met"`,
		`"exact":true,"unit":"/s","reproduced":"-","mark":{"at_least":2000},"met":"missed"`,
		`"paper_value":10,"statement":null,"tolerance":0,"ours":null,"ci95":null,"n":0,"exact":false,"reproduced":"-","mark":{"at_most":3},"met":"not measured"`,
	} {
		if b, err := json.Marshal(claims[i]); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s has no %s, %v", b, want, err)
		}
	}
}

// of returns the median of eight values in an interval, with that interval.
func of(low, median, high float64) measure.Interval {
	return measure.Interval{Median: median, CI95: []float64{low, high}, Count: 8}
}

// The papers' values and Weft's that were once "as the paper" or "met": all contradict.
func TestVerdictContradicts(t *testing.T) {
	for name, test := range map[string]struct {
		says Statement
		ours measure.Interval
	}{
		"OSHI Fig. 14, 1.11 to 1.19":      {Range(1.11, 1.19, .05), of(7.5, 8.16, 8.5)},
		"OSHI Fig. 18, less than 1.10":    {AtMost(1.10, 0), of(1.47, 1.51, 1.58)},
		"OSHI Fig. 15, OpenVPN a fourth":  {Value(4, .25), of(1.46, 1.53, 1.60)},
		"SCP Fig. 7, 11 to 30":            {Value(11./30, .25), of(.65, .73, .81)},
		"SCP Fig. 6, 4 times":             {Value(4, .25), of(1.01, 1.05, 1.10)},
		"MSN Fig. 9, about 10 times":      {Value(10, .25), of(.9, 1.16, 1.5)},
		"SCP Fig. 8, less than 6 %":       {AtMost(6, 0), of(8.9, 9.8, 10.3)},
		"MSN Fig. 14, multiple is better": {Below(), of(1.5, 2.1, 3)},
	} {
		test.says = test.says.Said(name, name)
		c := Claim{What: name, Says: &test.says}.Of(test.ours).AtMost(100)
		if c.Reproduced() != VerdictContradicts || c.Cause() != NotExplained {
			t.Errorf("%s: %s (%s), want that it contradicts", name, c.Reproduced(), c.Cause())
		}
		if c.Met() != VerdictMet {
			t.Errorf("%s: the mark is %s, whatever the paper says", name, c.Met())
		}
	}
}

func TestVerdict(t *testing.T) {
	twice := Value(2, .25).Said("twice", "2 times")
	known := twice.Because("counted")
	says := Claim{Says: &twice}
	for name, test := range map[string]struct {
		claim                  Claim
		reproduced, met, cause string
	}{
		"a remark":             {Claim{Ours: 3, Value: 2}, "-", "-", ""},
		"as the paper":         {says.Of(of(1.6, 2, 2.4)), VerdictReproduced, "-", ""},
		"below":                {says.Of(of(1, 1.1, 1.4)), VerdictContradicts, "-", NotExplained},
		"above, explained":     {Claim{Says: &known}.Of(of(3, 4, 5)), VerdictContradicts, "-", "counted"},
		"across the tolerance": {says.Of(of(1, 2, 2.1)), VerdictOpen, "-", ""},
		"across all":           {says.Of(of(1, 2, 9)), VerdictOpen, "-", ""},
		"not measured":         {says.Of(measure.Median(nil)).AtMost(1), VerdictMissing, VerdictMissing, ""},
		"five rounds":          {says.Of(measure.Median([]float64{9, 9, 9, 9, 9})).AtMost(1), VerdictNone, VerdictNone, "5 rounds were made; an interval needs 6"},
		"six rounds":           {says.Of(measure.Median([]float64{9, 9, 9, 9, 9, 9})).AtMost(1), VerdictContradicts, VerdictMissed, NotExplained},
		"one round":            {Claim{}.Of(measure.Median([]float64{1})).AtMost(2), "-", VerdictNone, "1 rounds were made; an interval needs 6"},
		"a count":              {says.Exactly(0).AtMost(0), VerdictContradicts, VerdictMet, NotExplained},
		"around the mark":      {Claim{}.Of(of(1, 2, 3)).AtMost(2), "-", VerdictOpen, ""},
		"at least":             {Claim{}.Of(of(3, 3, 4)).AtLeast(2), "-", VerdictMet, ""},
		"not at least":         {Claim{}.Of(of(1, 1, 1)).AtLeast(2), "-", VerdictMissed, ""},
		"disturbed":            {Claim{Says: &twice, disturbed: "by others"}.Of(of(9, 9, 9)).AtMost(2), VerdictNone, VerdictNone, "the machine was disturbed: by others"},
		"a count, disturbed":   {Claim{disturbed: "by others"}.Exactly(3).AtMost(2), "-", VerdictMissed, ""},
		"void":                 {Claim{Says: &twice, Void: "other services"}.Of(of(9, 9, 9)), VerdictNone, "-", "other services"},
	} {
		if c := test.claim; c.Reproduced() != test.reproduced || c.Met() != test.met || c.Cause() != test.cause {
			t.Errorf("%s: %s, %s, %q; want %s, %s, %q", name, c.Reproduced(), c.Met(), c.Cause(), test.reproduced, test.met, test.cause)
		}
	}
}
