package certs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Renewal is what Renew has done with one certificate.
type Renewal struct {
	Name    string
	Renewed bool      // false: it lasts for longer
	Until   time.Time // as it is now
}

// Renew issues again, with keys of their own and for as long as they were, those
// certificates of a folder that end within some time; names are which, none
// means all. What they say stays as it is. Those that have ended are renewed,
// too; the authority's is not.
func Renew(dir string, within time.Duration, names ...string) ([]Renewal, error) {
	return renewAt(dir, time.Now(), within, names)
}

func renewAt(dir string, now time.Time, within time.Duration, names []string) ([]Renewal, error) {
	if len(names) == 0 {
		found, err := issuedIn(dir)
		if err != nil {
			return nil, err
		}
		names = found
	}
	var requests []Request
	var done []Renewal
	for _, name := range names {
		if err := checkName("name", name); err != nil {
			return nil, err
		}
		if name == authority {
			return nil, errors.New("the authority is not renewed: make another with weft certs init --force, and issue all certificates again")
		}
		r, until, err := requestOf(dir, name)
		if err != nil {
			return nil, err
		}
		renewal := Renewal{Name: name, Until: until}
		if until.Sub(now) <= within {
			requests = append(requests, r)
			renewal.Renewed = true
		}
		done = append(done, renewal)
	}
	if len(requests) == 0 {
		return done, nil
	}
	if err := issueAt(dir, now, requests); err != nil {
		return nil, err
	}
	for i := range done {
		list, err := readCerts(filesOf(dir, done[i].Name).cert)
		if err != nil {
			return nil, err
		}
		done[i].Until = list[0].NotAfter
	}
	return done, nil
}

// issuedIn returns the names of the certificates in a folder that have their
// keys there.
func issuedIn(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.crt"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".crt")
		if _, err := os.Stat(filesOf(dir, name).key); err == nil && name != authority {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no certificates with their keys", dir)
	}
	slices.Sort(names)
	return names, nil
}

// requestOf returns the request that makes a certificate of a folder again.
func requestOf(dir, name string) (Request, time.Time, error) {
	r := Request{Name: name, Force: Replace}
	f := filesOf(dir, name)
	list, err := readCerts(f.cert)
	if err != nil {
		return r, time.Time{}, err
	}
	c := list[0]
	for _, uri := range uris(c) {
		rest, ours := strings.CutPrefix(uri, "weft://")
		kind, value, _ := strings.Cut(rest, "/")
		switch {
		case !ours:
		case kind == "service":
			r.Services = append(r.Services, value)
		case kind == "role":
			r.Role = value
		case kind == string(Switch):
			sw, err := flow.ParseDPID(value)
			if err != nil {
				return r, time.Time{}, fmt.Errorf("%s: %s: %w", f.cert, uri, err)
			}
			r.Kind, r.Switches = Switch, append(r.Switches, sw)
		default:
			r.Kind = Kind(kind)
		}
	}
	if r.Kind == "" {
		return r, time.Time{}, fmt.Errorf("%s is not one of weft certs': it has no identity (weft://…)", f.cert)
	}
	r.Hosts = []string{}
	for _, h := range hostsOf(c) {
		if net.ParseIP(h) != nil || hostName.MatchString(h) {
			r.Hosts = append(r.Hosts, h)
		}
	}
	r.Validity = c.NotAfter.Sub(c.NotBefore) - earlier
	return r, c.NotAfter, nil
}
