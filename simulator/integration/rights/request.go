// Package rights compares the permissions of the shipped roles with the requests to an API server, so that no role
// allows more.
package rights

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is an account's request to an API server, in the words of a role's rule.
type Request struct {
	// Account is a user, or a group that every user is in.
	Account string
	Verb    string
	// Resource is group/resource or group/resource/subresource; the core group is empty.
	Resource string
	// Namespace and Name are empty where the request has none, and Elsewhere where no role depends on them.
	Namespace, Name string
}

// Elsewhere stands for a namespace that no role is in, and for a name that no rule has.
const Elsewhere = "*"

// String returns the request as a line of a record.
func (r Request) String() string {
	fields := []string{r.Account, r.Verb, r.Resource, r.Namespace, r.Name}
	for i, field := range fields {
		if field == "" {
			fields[i] = "-"
		}
	}
	return strings.Join(fields, " ")
}

// Format writes a record.
func Format(requests []Request) string {
	var record strings.Builder
	record.WriteString(
		"# What Lockstep asks of an API server in the integration tests, as its audit log says: account, verb, resource,\n" +
			"# namespace, name. Written by: go test ./simulator/integration -args -requests write\n",
	)
	for _, request := range requests {
		record.WriteString(request.String() + "\n")
	}
	return record.String()
}

// Parse reads a record: a request a line, and comments.
func Parse(record string) ([]Request, error) {
	var requests []Request
	for line := range strings.Lines(record) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 5 {
			return nil, fmt.Errorf(
				"reading %q: it has %d words; want account, verb, resource, namespace, name",
				line,
				len(fields),
			)
		}
		for i, field := range fields {
			if field == "-" {
				fields[i] = ""
			}
		}
		requests = append(requests, Request{fields[0], fields[1], fields[2], fields[3], fields[4]})
	}
	return requests, nil
}

// Audited returns the requests in an API server's audit log that these rights allowed, each once and sorted. A request
// by which a client impersonates one of the programs (in their namespace) is no evidence about the program.
func Audited(log io.Reader, allowed []Right, programs string) ([]Request, error) {
	found := map[Request]bool{}
	reader := bufio.NewReader(log)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 && err == nil {
			var event auditv1.Event
			if err := json.Unmarshal(line, &event); err != nil {
				return nil, fmt.Errorf("reading an audit event: %w", err)
			}
			for _, request := range asked(event, programs) {
				if recorded, ok := asRecorded(request, allowed); ok {
					found[recorded] = true
				}
			}
		}
		if errors.Is(err, io.EOF) { // a line without its end is still being written
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
	}
	requests := make([]Request, 0, len(found))
	for request := range found {
		requests = append(requests, request)
	}
	slices.SortFunc(requests, func(a, b Request) int { return strings.Compare(a.String(), b.String()) })
	return requests, nil
}

// asked returns the requests of an event that need rights.
func asked(event auditv1.Event, programs string) []Request {
	object := event.ObjectRef
	if object == nil || event.Annotations["authorization.k8s.io/decision"] != "allow" {
		return nil
	}
	request := Request{
		Account: event.User.Username, Verb: event.Verb, Resource: object.APIGroup + "/" + object.Resource,
		Namespace: object.Namespace, Name: object.Name,
	}
	if object.Subresource != "" {
		request.Resource += "/" + object.Subresource
	}
	accounts := []string{request.Account}
	var requests []Request
	if user := event.ImpersonatedUser; user != nil {
		namespace, name, isAccount := strings.Cut(strings.TrimPrefix(user.Username, "system:serviceaccount:"), ":")
		program := "system:serviceaccount:" + programs + ":"
		if strings.HasPrefix(user.Username, program) && !strings.HasPrefix(event.User.Username, program) {
			return nil
		}
		if isAccount {
			requests = append(requests, Request{request.Account, "impersonate", "/serviceaccounts", namespace, name})
		}
		accounts = append([]string{user.Username}, user.Groups...)
	}
	for _, account := range accounts {
		request.Account = account
		requests = append(requests, request)
		// Applying or updating a missing object creates it, which is a right of its own.
		if event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusCreated && event.Verb != "create" {
			created := request
			created.Verb = "create"
			requests = append(requests, created)
		}
	}
	return requests
}

// asRecorded reduces a request to the parts on which rights depend; false if none of them allows it.
func asRecorded(request Request, allowed []Right) (Request, bool) {
	recorded := request
	if request.Namespace != "" {
		recorded.Namespace = Elsewhere
	}
	if request.Name != "" {
		recorded.Name = Elsewhere
	}
	needed := false
	for _, right := range allowed {
		if !right.uses(request) {
			continue
		}
		needed = true
		if right.Namespace != "" {
			recorded.Namespace = right.Namespace
		}
		if right.Name != "" {
			recorded.Name = right.Name
		}
	}
	return recorded, needed
}
