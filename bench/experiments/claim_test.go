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
	claims := []Claim{
		{Figure: "Fig. 9", What: "REST to WebSocket", Paper: "7 times", Value: 7, Ours: 1.75, CI95: []float64{1.2, 2}, Relative: true},
		Claim{What: "met", Paper: "-", Ours: 2.5, Unit: "ms"}.AtMost(3),
		Claim{What: "missed", Paper: "-", Ours: 1234.5, Unit: "ms"}.AtMost(3),
		Claim{What: "not measured", Paper: "about 10 times", Value: 10, Ours: math.NaN()}.AtMost(3),
		Claim{What: "lost", Paper: "none", Ours: 0}.AtMost(0),
	}
	var text, csv bytes.Buffer
	if err := writeText(&text, claims); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"FIGURE  WHAT               PAPER           WEFT     95 %      WEFT/PAPER  BOUND    VERDICT",
		"Fig. 9  REST to WebSocket  7 times         1.75     1.2 to 2  0.25        -        as the paper",
		"-       met                -               2.5 ms   -         -           <= 3 ms  met",
		"-       missed             -               1234 ms  -         -           <= 3 ms  MISSED",
		"-       not measured       about 10 times  none     -         -           <= 3     not measured",
		"-       lost               none            0        -         -           <= 0     met", "",
	}, "\n")
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	if err := writeCSV(&csv, claims[:1]); err != nil {
		t.Fatal(err)
	}
	if got, want := csv.String(), "figure,what,paper,weft,95 %,weft/paper,bound,verdict\nFig. 9,REST to WebSocket,7 times,1.75,1.2 to 2,0.25,-,as the paper\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, want := range map[int]string{3: `"weft":null,"ours":null,"ci95":null,"verdict":"not measured"`, 0: `"figure":"Fig. 9","what":"REST to WebSocket","paper":"7 times","paper_value":7,"weft":1.75,"ours":1.75,"ci95":[1.2,2],"verdict":"as the paper"`} {
		if b, err := json.Marshal(claims[i]); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s has no %s, %v", b, want, err)
		}
	}
}

func TestVerdict(t *testing.T) {
	of := func(v ...float64) measure.Interval { return measure.Median(v) }
	for name, test := range map[string]struct {
		claim Claim
		want  string
	}{
		"nothing is asked":                    {Claim{Ours: 3, Value: 2}, VerdictNone},
		"not measured":                        {Claim{}.Of(of()).AtMost(1), VerdictMissing},
		"below the bound":                     {Claim{}.Of(of(1, 1, 1, 1, 1, 2)).AtMost(2), VerdictMet},
		"above the bound":                     {Claim{}.Of(of(3, 3, 3, 3, 3, 4)).AtMost(2), VerdictMissed},
		"around the bound":                    {Claim{}.Of(of(1, 2, 2, 3, 1, 3)).AtMost(2), VerdictOpen},
		"a count":                             {Claim{Ours: 0}.AtMost(0), VerdictMet},
		"a ratio around 1":                    {Claim{Relative: true, Value: 7}.Of(of(0.8, 0.9, 1, 1.1, 1.2, 1.3)), VerdictNothing},
		"a ratio of one round":                {Claim{Relative: true, Value: 7}.Of(of(5)), VerdictNothing},
		"a ratio as the paper":                {Claim{Relative: true, Value: 7}.Of(of(1.2, 1.2, 1.3, 1.3, 1.3, 1.4)), VerdictSame},
		"a ratio against the paper":           {Claim{Relative: true, Value: 1.5}.Of(of(0.7, 0.7, 0.8, 0.7, 0.7, 0.7)), VerdictOther},
		"a ratio as the paper's words":        {Claim{Relative: true, Expect: Less}.Of(of(0.7, 0.7, 0.8, 0.7, 0.7, 0.7)), VerdictSame},
		"a ratio of which the paper is quiet": {Claim{Relative: true}.Of(of(0.7, 0.7, 0.8, 0.7, 0.7, 0.7)), VerdictDiffers},
		"disturbed, with a bound":             {Claim{disturbed: true}.Of(of(1, 1, 1, 1, 1, 1)).AtMost(2), VerdictDisturbed},
		"disturbed, a ratio":                  {Claim{disturbed: true, Relative: true}.Of(of(2, 2, 2, 2, 2, 2)), VerdictDisturbed},
	} {
		if got := test.claim.Verdict(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
