package trigger

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"pawl/internal/lib/loosejson"
	"pawl/internal/steward/delivery"
)

var errBody = errors.New("the body is not one JSON object")

// eventOf returns the content of an object as an event. Without a text for the body, it is the whole object.
func eventOf(o loosejson.Object) delivery.Event {
	e := delivery.Event{
		Title: o.Text("title", "summary", "subject"), Body: o.Text("body", "description", "message"), Name: o.Text("name", "type"),
		Action: o.Text("action"), Repo: o.Text("repo"), Branch: o.Text("branch"), Commit: o.Text("commit"), URL: o.Text("url"),
		Labels: loosejson.Decode[[]string](o["labels"]),
	}
	if e.Body == "" {
		pretty, _ := json.MarshalIndent(o, "", "  ") // a map of JSON values is always valid JSON
		e.Body = string(pretty)
	}
	return e
}

func decode(body []byte) (o loosejson.Object, err error) {
	if json.Unmarshal(body, &o) != nil || o == nil {
		return nil, errBody
	}
	return o, nil
}

// readJSON reads plain JSON. Only the body is signed, so it is the key: under a new name it makes no second task.
func readJSON(r request) (e delivery.Event, why string, err error) {
	o, err := decode(r.body)
	if err != nil {
		return e, "", err
	}
	e = eventOf(o)
	e.Title = cmp.Or(e.Title, e.Name, "A delivery without a title")
	e.Key = digest(r.body)
	e.Delivery = cmp.Or(r.header.Get(DeliveryHeader), e.Key)
	return e, "", nil
}

// readStandard reads the envelope of Standard Webhooks: type, timestamp and data. Its ID is signed.
func readStandard(r request) (e delivery.Event, why string, err error) {
	o, err := decode(r.body)
	if err != nil {
		return e, "", err
	}
	kind := o.Text("type")
	if data, err := decode(o["data"]); err == nil {
		o = data
	}
	e = eventOf(o)
	e.Name = cmp.Or(kind, e.Name)
	e.Title = cmp.Or(e.Title, e.Name, "A delivery without a title")
	e.Delivery = r.header.Get(webhooks.HeaderWebhookID)
	e.Key = e.Delivery
	return e, "", nil
}

// alerts is the format of Alertmanager.
type alerts struct {
	GroupKey          string            `json:"groupKey"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []struct {
		Status       string            `json:"status"`
		Labels       map[string]string `json:"labels"`
		Annotations  map[string]string `json:"annotations"`
		StartsAt     time.Time         `json:"startsAt"`
		GeneratorURL string            `json:"generatorURL"`
	} `json:"alerts"`
}

// shownAlerts is how many alerts of a group a task lists.
const shownAlerts = 20

// readAlerts reads a group of alerts. Alertmanager sends a group again as long as it fires. So the key is the group,
// and the time when the oldest alert that still fires began. A group that fires again later is another task.
func readAlerts(r request) (e delivery.Event, why string, err error) {
	var in alerts
	if json.Unmarshal(r.body, &in) != nil {
		return e, "", errBody
	}
	if in.GroupKey == "" {
		return e, "", errors.New("the body has no groupKey")
	}
	var body strings.Builder
	var since time.Time
	firing := 0
	for _, a := range in.Alerts {
		if a.Status != "firing" {
			continue
		}
		if since.IsZero() || a.StartsAt.Before(since) {
			since = a.StartsAt
		}
		if firing++; firing <= shownAlerts {
			fmt.Fprintf(&body, "- since %s: %s\n", a.StartsAt.UTC().Format(time.RFC3339), pairs(a.Labels))
			for _, name := range slices.Sorted(maps.Keys(a.Annotations)) {
				fmt.Fprintf(&body, "  %s: %s\n", name, a.Annotations[name])
			}
			if a.GeneratorURL != "" {
				fmt.Fprintf(&body, "  %s\n", a.GeneratorURL)
			}
		}
	}
	if firing == 0 {
		return e, "no alert of the group fires", nil
	}
	if firing > shownAlerts {
		fmt.Fprintf(&body, "- and %d more\n", firing-shownAlerts)
	}
	e = delivery.Event{
		Key: in.GroupKey + "\n" + since.UTC().Format(time.RFC3339Nano), Body: body.String(),
		Name: cmp.Or(in.CommonLabels["alertname"], in.GroupLabels["alertname"]), Action: "firing", URL: in.ExternalURL,
	}
	e.Delivery = digest([]byte(e.Key))
	e.Title = cmp.Or(in.CommonAnnotations["summary"], e.Name, pairs(in.GroupLabels), "An alert fires")
	for _, name := range slices.Sorted(maps.Keys(in.CommonLabels)) {
		e.Labels = append(e.Labels, name+"="+in.CommonLabels[name])
	}
	return e, "", nil
}

func pairs(labels map[string]string) string {
	var w bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&w, "%s=%q ", name, labels[name])
	}
	return strings.TrimSpace(w.String())
}
