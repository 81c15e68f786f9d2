// Package trigger lets monitoring submit tasks over HTTP (S5): one endpoint for all stewards of a host. It checks a
// delivery in this order: route, method, size, authentication, time, repetition, rate. Then it hands the task to the
// steward, and answers 202 only when Temporal has it. The steward decides what to do with the task. The content of a
// delivery is only data (internal/steward/delivery).
//
// The package never starts a workflow, never answers a gate and never writes a secret or a body to a log. Start at
// Endpoint, then forms.go (who may send), stewards.go (which triggers there are) and serve.go.
package trigger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"pawl/internal/home"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/delivery"
	"pawl/internal/steward/task"
)

// The limits of deliveries.
const (
	maxBody   = 1 << 20 // bytes of a delivery
	minSecret = 16      // bytes of a secret
	known     = 10000   // how many deliveries are remembered, to recognise a repeated one
	perSecond = 10      // deliveries of one trigger, after a burst
	burst     = 100
)

// submitTime is how long Temporal may take to accept a task.
const submitTime = 10 * time.Second

// tryAgain is how long a sender is told to wait if no better time is known.
const tryAgain = 5 * time.Second

// Route is a trigger of a running steward.
type Route struct {
	Steward string
	Run     string // the steward's first run: another steward with the same name has another route
	Trigger charter.Trigger
}

// Stewards finds the running stewards and hands tasks to them.
type Stewards interface {
	// Find returns the trigger of a running steward. An error means that this is not known now.
	Find(ctx context.Context, steward, trigger string) (Route, bool, error)
	// Submit returns when the steward is sure to get the task. The error is ErrGone if the steward has ended.
	Submit(ctx context.Context, steward string, t task.Task, tr task.Trigger) error
}

// ErrGone is returned by Submit for a steward that does not run.
var ErrGone = errors.New("the steward does not run")

// Endpoint is the http.Handler that answers deliveries.
type Endpoint struct {
	stewards Stewards
	home     home.Home
	logger   *slog.Logger
	now      func() time.Time
	mux      *http.ServeMux

	flights singleflight.Group
	seen    memory
	refused rate.Sometimes // limits how often refusals are logged, so that a sender of rubbish does not fill the disk

	mu       sync.Mutex
	limits   map[string]*rate.Limiter
	warnings map[string]string // the last logged warnings about each secret's file
}

// New returns the endpoint for stewards, with secrets from h.
func New(stewards Stewards, h home.Home, logger *slog.Logger, now func() time.Time) *Endpoint {
	e := &Endpoint{
		stewards: stewards, home: h, logger: logger, now: now, mux: http.NewServeMux(),
		refused: rate.Sometimes{First: 20, Interval: time.Second}, limits: map[string]*rate.Limiter{}, warnings: map[string]string{},
	}
	e.mux.HandleFunc("/v1/{steward}/{trigger}", e.take)
	e.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { unknown.write(w) })
	return e
}

func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(w, r) }

// Answer is the JSON that a sender gets.
type Answer struct {
	Result string `json:"result"`         // accepted, duplicate, ignored or refused
	Task   string `json:"task,omitempty"` // the task's ID
	Why    string `json:"why,omitempty"`  // why the delivery was ignored or refused

	status int
	after  time.Duration // when the sender should try again
}

func refuse(status int, why string) Answer {
	return Answer{Result: "refused", Why: why, status: status}
}

func away(why string) Answer {
	return Answer{Result: "refused", Why: why, status: http.StatusServiceUnavailable, after: tryAgain}
}

// unknown does not say whether the steward or the trigger is unknown.
var unknown = refuse(http.StatusNotFound, "no running steward has this trigger; send POST to /v1/<steward>/<trigger>")

func (a Answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if a.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(a.after.Seconds()))))
	}
	if a.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	w.WriteHeader(a.status)
	to := json.NewEncoder(w)
	to.SetEscapeHTML(false)
	_ = to.Encode(a) // the sender may have gone
}

func (e *Endpoint) take(w http.ResponseWriter, r *http.Request) {
	steward, trigger := r.PathValue("steward"), r.PathValue("trigger")
	a := e.answer(w, r, steward, trigger)
	log := e.logger.With("steward", steward, "trigger", trigger, "status", a.status)
	switch {
	case a.Result == "refused":
		e.refused.Do(func() { log.Warn("a delivery was refused", "why", a.Why) })
	case a.Result == "accepted":
		log.Info("a delivery became a task", "task", a.Task)
	default:
		log.Debug("a delivery made no task", "result", a.Result, "why", a.Why, "task", a.Task)
	}
	a.write(w)
}

// answer makes the checks in their order.
func (e *Endpoint) answer(w http.ResponseWriter, r *http.Request, steward, trigger string) Answer {
	route, found, err := e.stewards.Find(r.Context(), steward, trigger)
	switch {
	case err != nil:
		return away("Temporal does not answer")
	case !found || route.Trigger.From == charter.Health: // nobody may send deliveries to that trigger
		return unknown
	case r.Method != http.MethodPost:
		return refuse(http.StatusMethodNotAllowed, "send POST")
	}
	body, status, why := read(w, r)
	if status != 0 {
		return refuse(status, why)
	}
	form, built := forms[route.Trigger.From]
	secret, err := e.secret(route.Trigger.SecretFile)
	if err == nil && !built {
		err = fmt.Errorf("the trigger is from %q, which this version does not know", route.Trigger.From)
	}
	in := request{header: r.Header, body: body, now: e.now()}
	if err == nil {
		err = form.verify(in, secret)
	}
	switch {
	case errors.Is(err, errUnsigned) || errors.Is(err, errStale):
		return refuse(http.StatusUnauthorized, err.Error())
	case err != nil: // the sender may not learn more
		e.refused.Do(func() {
			e.logger.Warn("a trigger can't be served", "steward", steward, "trigger", trigger, "error", err)
		})
		return away("this trigger can't be served now; the log of pawl says why")
	}
	event, why, err := form.read(in)
	switch {
	case err != nil:
		return refuse(http.StatusBadRequest, "the delivery can't be read: "+err.Error())
	case why != "":
		return Answer{Result: "ignored", Why: why, status: http.StatusOK}
	}
	t, wanted, err := delivery.Fill(route.Trigger.Name, route.Trigger.Task, event)
	switch {
	case err != nil:
		e.refused.Do(func() { e.logger.Warn("a trigger's task can't be filled", "steward", steward, "error", err) })
		return refuse(http.StatusInternalServerError, "the trigger's task can't be filled; the log of pawl says why")
	case !wanted:
		return Answer{Result: "ignored", Why: "the task's title is empty, so the trigger does not want it", status: http.StatusOK}
	}
	return e.once(r.Context(), route, t)
}

// read returns the body, or the status and the reason to refuse it with.
func read(w http.ResponseWriter, r *http.Request) (body []byte, status int, why string) {
	tooLarge := r.ContentLength > maxBody
	var err error
	if !tooLarge {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		tooLarge = errors.As(err, new(*http.MaxBytesError))
	}
	var slow net.Error
	switch {
	case tooLarge:
		return nil, http.StatusRequestEntityTooLarge, fmt.Sprintf("a delivery may have at most %d bytes", maxBody)
	case errors.As(err, &slow) && slow.Timeout():
		return nil, http.StatusRequestTimeout, "the body did not come in time"
	case err != nil:
		return nil, http.StatusBadRequest, "the body could not be read"
	}
	return body, 0, ""
}

// secret reads a trigger's secret from its file each time, so that a change takes effect at once.
func (e *Endpoint) secret(path string) ([]byte, error) {
	s, err := e.home.Secret(path)
	if err != nil {
		return nil, err
	}
	if len(s.Value) < minSecret {
		return nil, fmt.Errorf("%w: it has fewer than %d bytes", errSecret, minSecret)
	}
	says := strings.Join(s.Warnings, "; ")
	e.mu.Lock()
	fresh := e.warnings[path] != says
	e.warnings[path] = says
	e.mu.Unlock()
	if fresh && says != "" {
		e.logger.Warn("others may know a trigger's secret: " + says)
	}
	return s.Value, nil
}

// once submits a task, once for all deliveries that are the same. Deliveries that come at the same time wait for one
// answer, so that none is called a duplicate of one that failed.
func (e *Endpoint) once(ctx context.Context, route Route, t task.Task) Answer {
	keys := []string{route.Run + "/" + t.ID, route.Run + "//" + t.Dedupe}
	led := false
	v, _, _ := e.flights.Do(keys[0], func() (any, error) {
		led = true
		if of := e.seen.task(keys...); of != "" {
			return Answer{Result: "duplicate", Task: of, status: http.StatusOK}, nil
		}
		if wait := e.wait(route); wait > 0 {
			return Answer{Result: "refused", Why: "this trigger delivers too often", status: http.StatusTooManyRequests, after: wait}, nil
		}
		// The delivery counts even if the sender hangs up now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
		defer cancel()
		tr := task.Trigger{Name: route.Trigger.Name, From: route.Trigger.From, Delivery: strings.TrimPrefix(t.Dedupe, route.Trigger.Name+"/"), Task: t.ID, Result: "accepted"}
		err := e.stewards.Submit(ctx, route.Steward, t, tr)
		switch {
		case errors.Is(err, ErrGone):
			return unknown, nil
		case err != nil:
			e.logger.Warn("a task can't be submitted", "steward", route.Steward, "task", t.ID, "error", err)
			return away("Temporal does not accept the task now"), nil
		}
		e.seen.add(t.ID, keys...)
		return Answer{Result: "accepted", Task: t.ID, status: http.StatusAccepted}, nil
	})
	a := v.(Answer)
	if !led && a.Result == "accepted" {
		a.Result, a.status = "duplicate", http.StatusOK
	}
	return a
}

// wait returns how long a trigger must wait until it may deliver again, 0 for now.
func (e *Endpoint) wait(route Route) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := route.Steward + "/" + route.Trigger.Name
	if e.limits[name] == nil {
		e.limits[name] = rate.NewLimiter(perSecond, burst)
	}
	now := e.now()
	r := e.limits[name].ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// memory remembers the tasks of the latest keys, and of as many before them. The steward knows those that it has forgotten.
type memory struct {
	mu              sync.Mutex
	latest, earlier map[string]string
}

// task returns the task of the first key that is known, or "".
func (m *memory) task(keys ...string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if of := cmp.Or(m.latest[key], m.earlier[key]); of != "" {
			return of
		}
	}
	return ""
}

func (m *memory) add(task string, keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.latest == nil || len(m.latest) >= known {
		m.latest, m.earlier = map[string]string{}, m.latest
	}
	for _, key := range keys {
		m.latest[key] = task
	}
}
