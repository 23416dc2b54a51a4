package nf

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// idOf returns the id of the n-th instance.
func idOf(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// profile returns the JSON text of the n-th instance, a UDM with some members.
func profile(n int, members string) []byte {
	return []byte(fmt.Sprintf(`{"nfInstanceId": %q, "nfType": "UDM", "nfStatus": "REGISTERED", "ipv4Addresses": ["10.0.0.%d"], "load": 0%s}`, idOf(n), n, members))
}

func register(t *testing.T, r *Repository, now time.Time, n int, members string) []Notice {
	t.Helper()
	_, _, notices, err := r.Register(now, idOf(n), profile(n, members))
	if err != nil {
		t.Fatal(err)
	}
	return notices
}

func discovered(t *testing.T, r *Repository) int {
	t.Helper()
	s, err := r.Discover(&sbi.Query{TargetNFType: sbi.UDM, Requester: sbi.Requester{NFType: sbi.AMF}})
	if err != nil {
		t.Fatal(err)
	}
	return len(s.NFInstances)
}

const beat = `[{"op":"replace","path":"/nfStatus","value":"REGISTERED"},{"op":"replace","path":"/load","value":37}]`

// TestHeartbeats lets an instance be silent: it is suspended a margin after its
// heartbeat was due, comes back with the next one, and is removed at last.
func TestHeartbeats(t *testing.T) {
	r := NewRepository(DefaultRepository())
	register(t, r, start, 1, `, "heartBeatTimer": 4`)
	register(t, r, start, 2, `, "heartBeatTimer": 3600`) // is given 10
	if _, err := r.Subscribe(start, []byte(`{"nfStatusNotificationUri": "http://10.0.0.9/n", "reqNfType": "AMF", "subscrCond": {"nfInstanceId": "`+idOf(1)+`"}}`)); err != nil {
		t.Fatal(err)
	}
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	events := func(n []Notice) string {
		b, _ := json.Marshal(n)
		return string(b)
	}
	if n := r.Expire(at(9)); len(n) != 0 || discovered(t, r) != 2 {
		t.Errorf("within the margin: %s, %d found", events(n), discovered(t, r))
	}
	if n := r.Expire(at(10)); !strings.Contains(events(n), `"path":"/nfStatus","newValue":"SUSPENDED"`) || len(n) != 1 || discovered(t, r) != 1 {
		t.Errorf("behind the margin: %s, %d found", events(n), discovered(t, r))
	}
	if n := r.Expire(at(11)); len(n) != 0 {
		t.Errorf("suspended twice: %s", events(n))
	}
	s, more, n, err := r.Update(at(12), idOf(1), "", []byte(beat))
	if err != nil || more || len(n) != 1 || discovered(t, r) != 2 || !strings.Contains(string(s.JSON), `"load":37`) {
		t.Errorf("back again: %s, %v, %s, %v", s.JSON, more, events(n), err)
	}
	if _, _, n, err := r.Update(at(13), idOf(1), "", []byte(beat)); err != nil || len(n) != 0 {
		t.Errorf("a heartbeat is notified of: %s, %v", events(n), err)
	}
	r.Expire(at(16)) // the other's time is over
	if discovered(t, r) != 1 {
		t.Errorf("%d found", discovered(t, r))
	}
	if n := r.Expire(at(13 + 4 + 5 + 60 + 1)); len(n) != 1 || !strings.Contains(events(n), "NF_DEREGISTERED") {
		t.Errorf("removed: %s", events(n))
	}
	if _, _, _, err := r.Update(at(90), idOf(1), "", []byte(beat)); err == nil || sbi.ProblemOf(err).Status != 404 {
		t.Errorf("a heartbeat of one that was removed: %v", err)
	}
}

func TestRegister(t *testing.T) {
	cfg := DefaultRepository()
	cfg.Instances = 2
	r := NewRepository(cfg)
	s, created, _, err := r.Register(start, idOf(1), profile(1, `, "pcfInfo": {"x": [1.50]}`))
	if err != nil || !created || s.ETag != sbi.ETag(s.JSON) || !strings.Contains(string(s.JSON), `"heartBeatTimer":10`) || !strings.Contains(string(s.JSON), `"x":[1.50]`) {
		t.Errorf("%s, %v, %v", s.JSON, created, err)
	}
	if again, created, _, err := r.Register(start, idOf(1), profile(1, "")); err != nil || created || again.ETag == s.ETag {
		t.Errorf("%s, %v, %v", again.JSON, created, err)
	}
	register(t, r, start, 2, "")
	for want, f := range map[string]func() error{
		"500 INSUFFICIENT_RESOURCES":                func() error { _, _, _, err := r.Register(start, idOf(3), profile(3, "")); return err },
		"400 MANDATORY_IE_INCORRECT: /nfInstanceId": func() error { _, _, _, err := r.Register(start, idOf(3), profile(2, "")); return err },
		"400 MANDATORY_IE_MISSING: /nfStatus": func() error {
			_, _, _, err := r.Register(start, idOf(2), []byte(`{"nfInstanceId": "`+idOf(2)+`", "nfType": "UDM", "fqdn": "a.org"}`))
			return err
		},
		"412": func() error { _, _, _, err := r.Update(start, idOf(2), `"other"`, []byte(beat)); return err },
		"403 MODIFICATION_NOT_ALLOWED": func() error {
			_, _, _, err := r.Update(start, idOf(2), "", []byte(`[{"op":"replace","path":"/nfType","value":"AMF"}]`))
			return err
		},
		"400 OPTIONAL_IE_INCORRECT: /load: want 0 to 100": func() error {
			_, _, _, err := r.Update(start, idOf(2), "", []byte(`[{"op":"replace","path":"/load","value":101}]`))
			return err
		},
		"404 CONTEXT_NOT_FOUND":      func() error { _, err := r.Deregister(start, idOf(3)); return err },
		"404 SUBSCRIPTION_NOT_FOUND": func() error { return r.Unsubscribe("7") },
	} {
		if err := f(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if ids, all := r.List("UDM", 1); len(ids) != 1 || all != 2 || ids[0] != idOf(1) {
		t.Errorf("%q of %d", ids, all)
	}
	if ids, all := r.List("AMF", 0); ids != nil || all != 0 {
		t.Errorf("%q of %d", ids, all)
	}
}

func TestSubscriptions(t *testing.T) {
	cfg := DefaultRepository()
	cfg.Subscriptions, cfg.Subscribed = 1, time.Hour
	r := NewRepository(cfg)
	body := []byte(`{"nfStatusNotificationUri": "http://10.0.0.9/n", "reqNfType": "AMF", "subscrCond": {"nfType": "UDM"}, "validityTime": "2030-01-01T00:00:00Z"}`)
	s, err := r.Subscribe(start, body)
	if err != nil || !s.ValidityTime.Equal(start.Add(time.Hour)) {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := r.Subscribe(start, body); err == nil || sbi.ProblemOf(err).Cause != sbi.InsufficientResources {
		t.Errorf("one too many: %v", err)
	}
	n := register(t, r, start, 1, `, "allowedNfTypes": ["AMF"], "priority": 1`)
	b, _ := json.Marshal(n)
	if len(n) != 1 || n[0].URI != "http://10.0.0.9/n" || n[0].Data.Event != sbi.NFRegistered || n[0].Data.NFProfile == nil || strings.Contains(string(b), "allowed") {
		t.Errorf("registered: %s", b)
	}
	if n := register(t, r, start, 2, `, "allowedNfTypes": ["SMF"]`); len(n) != 0 {
		t.Errorf("somebody is notified of what it may not use: %v", n)
	}
	_, more, n, err := r.Update(start, idOf(1), "", []byte(`[{"op":"replace","path":"/priority","value":9}]`))
	if b, _ := json.Marshal(n); err != nil || !more || len(n) != 1 || !strings.Contains(string(b), `[{"op":"REPLACE","path":"/priority","newValue":9}]`) {
		t.Errorf("%s, %v, %v", b, more, err)
	}
	if s, err = r.Resubscribe(start, s.SubscriptionID, []byte(`[{"op":"replace","path":"/validityTime","value":"2026-01-01T00:10:00Z"}]`)); err != nil || !s.ValidityTime.Equal(start.Add(10*time.Minute)) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := r.Resubscribe(start, s.SubscriptionID, []byte(`[{"op":"replace","path":"/nfStatusNotificationUri","value":"http://x/"}]`)); sbi.ProblemOf(err).Cause != sbi.ModificationNotAllowed {
		t.Errorf("%v", err)
	}
	late := start.Add(11 * time.Minute)
	if n := register(t, r, late, 3, ""); len(n) != 0 {
		t.Errorf("notified behind its time: %v", n)
	}
	r.Expire(late)
	if err := r.Unsubscribe(s.SubscriptionID); err == nil {
		t.Error("the subscription stays behind its time")
	}
}

// FuzzRepository registers and changes what anybody may send.
func FuzzRepository(f *testing.F) {
	f.Add(profile(1, ""), []byte(beat))
	f.Add(profile(1, `, "nfServiceList": {}, "heartBeatTimer": -1`), []byte(`[{"op":"add","path":"/nfServices","value":[{}]}]`))
	f.Add(profile(1, `, "nfServices": [null], "sNssais": [{}]`), []byte(`[{"op":"move","from":"/nfType","path":"/nfStatus"}]`))
	f.Fuzz(func(t *testing.T, body, patch []byte) {
		r := NewRepository(DefaultRepository())
		if _, err := r.Subscribe(start, []byte(`{"nfStatusNotificationUri": "http://10.0.0.9/n"}`)); err != nil {
			t.Fatal(err)
		}
		if sbi.DefaultLimits.Check(body) != nil {
			return
		}
		if _, _, _, err := r.Register(start, idOf(1), body); err != nil {
			return
		}
		before, err := r.Get(idOf(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := r.Update(start, idOf(1), "", patch); err != nil {
			if after, _ := r.Get(idOf(1)); after.ETag != before.ETag {
				t.Fatalf("%v, and the profile has changed", err)
			}
		}
		if n := r.Expire(start.Add(23 * time.Hour)); len(n) == 0 {
			t.Fatal("an instance that is silent for a day is still there")
		}
	})
}
