package nf

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"github.com/weft-sdn/weft/sbi"
)

// Agent returns a reverse proxy to one address or, in turn, to several: what a
// service communication proxy is at the least, to be measured beside others.
func Agent(client *http.Client, to []string, log *slog.Logger) (http.Handler, error) {
	var targets []*url.URL
	for _, text := range to {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, errors.New("to " + text + ": want a URI such as http://10.0.0.5:7777")
		}
		targets = append(targets, u)
	}
	if len(targets) == 0 {
		return nil, errors.New("want an address to go to")
	}
	var turn atomic.Uint64
	return &httputil.ReverseProxy{
		Transport: client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(targets[(turn.Add(1)-1)%uint64(len(targets))])
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			sbi.WriteProblem(w, sbi.Problem(http.StatusBadGateway, sbi.TargetNotReachable, err.Error()))
		},
	}, nil
}
