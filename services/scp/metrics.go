package scp

// Counter is a metric that only grows.
type Counter interface{ Add(float64) }

// unread is a metric that nobody reads.
type unread struct{}

func (unread) Add(float64)     {}
func (unread) Observe(float64) {}

func noCounter(string, string, ...string) Counter               { return unread{} }
func noHistogram(string, string, []float64, ...string) Observer { return unread{} }

// counts are the service's metrics.
type counts struct {
	known, asked, stale, unchanged, failed       Counter // discoveries, by how they were answered
	forbidden, poisoned, shed, malformed         Counter // requests that were refused, by reason
	passed, nrfFails, balancerFails, noRoom      Counter
	relayed, unrelayed, translated, untranslated Counter
	handedOn                                     Counter
	loads, loadsUnused, loadsMalformed           Counter // what producers tell of their load
	allowed, refused, ownForbidden, undecided    Counter // direct connections
	ownBalanced                                  Counter
}

func newCounts(counter func(name, help string, labels ...string) Counter) counts {
	const discoveries = "Discoveries, by how they were answered."
	const requests = "Requests that the front refused, by reason."
	const directs = "Connections to producers' own addresses, by what became of them."
	const notifications = "Notifications of the NRF that were passed on, by what they tell of."
	const reports = "Reports of load and overload in producers' answers (3gpp-Sbi-Lci, 3gpp-Sbi-Oci), by what became of them."
	return counts{
		known:          counter("discoveries_total", discoveries, "from", "known"),
		asked:          counter("discoveries_total", discoveries, "from", "nrf"),
		stale:          counter("discoveries_total", discoveries, "from", "stale"),
		unchanged:      counter("discoveries_total", discoveries, "from", "not_modified"),
		failed:         counter("discoveries_total", discoveries, "from", "failed"),
		forbidden:      counter("requests_refused_total", requests, "reason", "not_allowed"),
		poisoned:       counter("requests_refused_total", requests, "reason", "foreign_address"),
		shed:           counter("requests_refused_total", requests, "reason", "overload"),
		malformed:      counter("requests_refused_total", requests, "reason", "malformed"),
		passed:         counter("requests_passed_total", "Requests passed on to the NRF."),
		relayed:        counter("requests_relayed_total", "Requests passed on to producers."),
		unrelayed:      counter("requests_refused_total", requests, "reason", "unreachable"),
		translated:     counter("notifications_total", notifications, "of", "end_point"),
		untranslated:   counter("notifications_total", notifications, "of", "instance"),
		handedOn:       counter("handed_on_total", "Instances that discoveries have found by their own addresses, for no end point stands for them."),
		loads:          counter("load_reports_total", reports, "verdict", "used"),
		loadsUnused:    counter("load_reports_total", reports, "verdict", "not_used"),
		loadsMalformed: counter("load_reports_total", reports, "verdict", "malformed"),
		nrfFails:       counter("nrf_failures_total", "Requests that the NRF did not answer, or with nonsense."),
		balancerFails:  counter("vips_failed_total", "VIPs that the balancer did not set."),
		noRoom:         counter("no_room_total", "Instances, endpoints and addresses for which there was no room."),
		allowed:        counter("direct_total", directs, "verdict", "allowed"),
		refused:        counter("direct_total", directs, "verdict", "refused"),
		undecided:      counter("direct_total", directs, "verdict", "undecided"),
		ownBalanced:    counter("direct_total", directs, "verdict", "balanced"),
		ownForbidden:   counter("direct_total", directs, "verdict", "forbidden"),
	}
}
