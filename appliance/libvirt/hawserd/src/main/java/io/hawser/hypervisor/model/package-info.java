/** What a domain wishes, shows and is given: values without behaviour of their own. */
package io.hawser.hypervisor.model;
