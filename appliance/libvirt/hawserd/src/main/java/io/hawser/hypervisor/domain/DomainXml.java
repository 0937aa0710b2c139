package io.hawser.hypervisor.domain;

import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import javax.xml.transform.OutputKeys;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerException;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NamedNodeMap;
import org.w3c.dom.Node;
import org.xml.sax.ErrorHandler;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;
import org.xml.sax.SAXParseException;

/**
 * A parsed domain XML, and the only parser of domain XML: no document type, no entities, no external references, at
 * most {@link #MAX_BYTES}. Not thread-safe.
 */
public final class DomainXml {
    /** Far above what libvirt writes. Limits the memory that a request at the socket can occupy. */
    public static final int MAX_BYTES = 1 << 20;
    /** Twice libvirt's own deepest XML, a chain of 200 backing stores. Parsing and writing recurse to this depth. */
    private static final int MAX_DEPTH = 512;
    private static final int MAX_SIZE_DIGITS = 19; // a larger number does not fit a count of bytes
    /** Name of the settings file that QEMU shows the guest. */
    public static final String FWCFG_NAME = "opt/io.hawser/guest.toml";

    private final Document document;
    private final Element root;
    private final UUID uuid;
    private final String name;

    private DomainXml(Document document) throws WishException {
        this.document = document;
        root = document.getDocumentElement();
        if (!root.getNodeName().equals("domain")) {
            throw new WishException("this is not a domain's XML: its element is " + printable(root.getNodeName()));
        }
        name = text(child(root, "name"));
        if (name.isEmpty()) {
            throw new WishException("the domain's XML has no name");
        }
        uuid = uuid(text(child(root, "uuid")));
    }

    /**
     * Parses a domain's XML.
     *
     * @throws WishException with the reason, if the text is not a domain's XML.
     */
    public static DomainXml parse(String xml) throws WishException {
        return new DomainXml(document(xml));
    }

    /** Parses libvirt's XML of any kind. */
    static Document document(String xml) throws WishException {
        if (xml.length() > MAX_BYTES || xml.getBytes(StandardCharsets.UTF_8).length > MAX_BYTES) {
            throw new WishException("a domain's XML must be at most " + MAX_BYTES + " bytes: characters="
                + xml.length());
        }
        try {
            DocumentBuilder builder = factory().newDocumentBuilder();
            builder.setErrorHandler(new Silent());
            builder.setEntityResolver((publicId, systemId) -> {
                throw new SAXException("a domain's XML must not refer to other documents");
            });
            return builder.parse(new InputSource(new StringReader(xml)));
        } catch (SAXException | IOException e) {
            throw new WishException("the domain's XML cannot be read: " + printable(String.valueOf(e.getMessage())), e);
        } catch (ParserConfigurationException e) {
            throw new IllegalStateException("the JDK's XML parser must have its secure features", e);
        }
    }

    private static DocumentBuilderFactory factory() throws ParserConfigurationException {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newDefaultNSInstance();
        factory.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
        factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
        factory.setAttribute(XMLConstants.ACCESS_EXTERNAL_DTD, "");
        factory.setAttribute(XMLConstants.ACCESS_EXTERNAL_SCHEMA, "");
        factory.setAttribute("jdk.xml.maxElementDepth", Integer.toString(MAX_DEPTH));
        factory.setXIncludeAware(false);
        factory.setExpandEntityReferences(false);
        return factory;
    }

    /** Throws failures, prints none. */
    private static final class Silent implements ErrorHandler {
        @Override
        public void warning(SAXParseException e) {
            // a warning does not make a domain's XML unusable
        }

        @Override
        public void error(SAXParseException e) throws SAXException {
            throw e;
        }

        @Override
        public void fatalError(SAXParseException e) throws SAXException {
            throw e;
        }
    }

    private static UUID uuid(String text) throws WishException {
        // Stricter than UUID.fromString: libvirt writes UUIDs in one form only.
        if (!text.matches("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")) {
            throw new WishException("the domain's XML has no UUID: uuid=" + printable(text));
        }
        return UUID.fromString(text);
    }

    /** The domain's UUID. */
    public UUID uuid() {
        return uuid;
    }

    /** The domain's name. */
    public String name() {
        return name;
    }

    /** libvirt's number of the running domain; -1 when the XML has none. */
    public int id() {
        String id = root.getAttribute("id");
        return id.matches("\\d{1,9}") ? Integer.parseInt(id) : -1;
    }

    /** The document, for changes. */
    public Document document() {
        return document;
    }

    /** The text of the document as it is now. */
    public String write() {
        return text(document);
    }

    /** The text of a node. */
    static String text(Node node) {
        try {
            TransformerFactory factory = TransformerFactory.newDefaultInstance();
            factory.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
            Transformer transformer = factory.newTransformer();
            transformer.setOutputProperty(OutputKeys.OMIT_XML_DECLARATION, "yes");
            StringWriter text = new StringWriter();
            transformer.transform(new DOMSource(node), new StreamResult(text));
            return text.toString();
        } catch (TransformerException e) {
            throw new IllegalStateException("a document that was read must be written", e);
        }
    }

    /**
     * The vGPU that the domain asks for; empty if it asks for none.
     *
     * @throws WishException names the invalid attribute.
     */
    public Optional<Wish> wish(Driver driver) throws WishException {
        Optional<Element> metadata = metadata(Wish.NAMESPACE);
        Optional<Shmem> device = device();
        for (Shmem shmem : shmems()) {
            if (shmem.name().startsWith(Shmem.PREFIX) && !shmem.name().equals(regionName())
                && shmem.name().substring(Shmem.PREFIX.length()).equalsIgnoreCase(uuid.toString())) {
                throw new WishException("the device's name must be in lower case: " + regionName());
            }
        }
        if (metadata.isEmpty()) {
            return device.isEmpty() ? Optional.empty() : Optional.of(Wish.ofDevice(checked(device.get()).sizeBytes()));
        }
        Element element = metadata.get();
        if (!element.getLocalName().equals("vgpu")) {
            throw new WishException("the metadata " + Wish.NAMESPACE + " must be one <vgpu> element: it is <"
                + printable(element.getLocalName()) + ">");
        }
        for (Node node = element.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node.getNodeType() == Node.ELEMENT_NODE) {
                throw new WishException("vgpu has no element " + printable(node.getNodeName())
                    + ": a vgpu has attributes only");
            }
        }
        Wish wish = Wish.of(attributes(element), driver);
        if (wish.transport() == Wish.Transport.SHM && device.isPresent()
            && checked(device.get()).sizeBytes() != wish.regionBytes()) {
            throw new WishException("vgpu: the device must have the region's size: region="
                + Wish.size(wish.regionBytes()) + " <shmem>'s size=" + Wish.size(device.get().sizeBytes()));
        }
        if (wish.transport() != Wish.Transport.SHM && device.isPresent()) {
            throw new WishException(
                "vgpu: with transport " + wish.transport().label() + " there must be no device: <shmem name='"
                    + regionName() + "'>");
        }
        return Optional.of(wish);
    }

    private static Shmem checked(Shmem device) throws WishException {
        if (!device.model().equals("ivshmem-plain")) {
            throw new WishException("the device " + device.name() + " must be of model ivshmem-plain: model="
                + printable(device.model()));
        }
        return device;
    }

    /** The status that hawserd last wrote; empty if there is none. */
    public Optional<VgpuStatus> status() {
        return metadata(VgpuStatus.NAMESPACE).map(element -> VgpuStatus.of(attributes(element)));
    }

    /** Whether the metadata has a status element, of hawserd or not. */
    public boolean hasStatus() {
        return metadata(VgpuStatus.NAMESPACE).isPresent();
    }

    /** Whether the metadata has a vgpu element, valid or not. */
    public boolean hasMetadata() {
        return metadata(Wish.NAMESPACE).isPresent();
    }

    /** The name of this domain's region. */
    public String regionName() {
        return Shmem.PREFIX + uuid;
    }

    /** The device that carries this domain's region. */
    public Optional<Shmem> device() {
        return shmems().stream().filter(shmem -> shmem.name().equals(regionName())).findFirst();
    }

    /** Its shared-memory devices. */
    public List<Shmem> shmems() {
        List<Shmem> found = new ArrayList<>();
        for (Element shmem : children(child(root, "devices"), "shmem")) {
            Element model = child(shmem, "model");
            Element alias = child(shmem, "alias");
            found.add(new Shmem(shmem.getAttribute("name"), sizeBytes(child(shmem, "size")),
                model == null ? "" : model.getAttribute("type"), alias == null ? "" : alias.getAttribute("name")));
        }
        return found;
    }

    /** QEMU's machine type, such as {@code pc-q35-7.2}; empty if the XML has none. */
    public String machine() {
        Element os = child(root, "os");
        Element type = os == null ? null : child(os, "type");
        return type == null ? "" : type.getAttribute("machine");
    }

    /** Parses a size as libvirt's virDomainParseScaledValue does: bytes, unless a unit is given. */
    private static long sizeBytes(Element size) {
        String digits = text(size);
        if (!digits.matches("\\d{1," + MAX_SIZE_DIGITS + "}")) {
            return 0;
        }
        BigInteger factor = switch (size.getAttribute("unit").toLowerCase(Locale.ROOT)) {
            case "", "b", "bytes" -> BigInteger.ONE;
            case "kb" -> BigInteger.valueOf(1000);
            case "k", "kib" -> BigInteger.valueOf(1L << 10);
            case "mb" -> BigInteger.valueOf(1_000_000);
            case "m", "mib" -> BigInteger.valueOf(1L << 20);
            case "gb" -> BigInteger.valueOf(1_000_000_000);
            case "g", "gib" -> BigInteger.valueOf(1L << 30);
            default -> BigInteger.ZERO;
        };
        BigInteger bytes = new BigInteger(digits).multiply(factor);
        return bytes.bitLength() < Long.SIZE ? bytes.longValue() : 0;
    }

    /** Sets the vgpu element of the metadata; null removes it. */
    public void setWish(Wish wish) {
        metadata(Wish.NAMESPACE).ifPresent(element -> element.getParentNode().removeChild(element));
        if (wish != null) {
            Element metadata = child(root, "metadata");
            if (metadata == null) {
                metadata = (Element) root.insertBefore(document.createElement("metadata"),
                    child(root, "uuid").getNextSibling());
            }
            Element element = document.createElementNS(Wish.NAMESPACE, Wish.PREFIX + ":vgpu");
            element.setAttributeNS(XMLConstants.XMLNS_ATTRIBUTE_NS_URI, "xmlns:" + Wish.PREFIX, Wish.NAMESPACE);
            wish.attributes().forEach(element::setAttribute);
            metadata.appendChild(element);
        }
    }

    /** Sets the settings file that QEMU shows the guest; null removes it. */
    public void setGuestFile(String path) {
        for (Element sysinfo : children(root, "sysinfo")) {
            if (sysinfo.getAttribute("type").equals("fwcfg")) {
                for (Element entry : children(sysinfo, "entry")) {
                    if (entry.getAttribute("name").equals(FWCFG_NAME)) {
                        sysinfo.removeChild(entry);
                    }
                }
                if (children(sysinfo, "entry").isEmpty()) {
                    root.removeChild(sysinfo);
                }
            }
        }
        if (path == null) {
            return;
        }
        Element sysinfo = children(root, "sysinfo").stream().filter(s -> s.getAttribute("type").equals("fwcfg"))
            .findFirst().orElseGet(() -> {
                Element made = document.createElement("sysinfo");
                made.setAttribute("type", "fwcfg");
                Element os = child(root, "os");
                root.insertBefore(made, os == null ? null : os);
                return made;
            });
        Element entry = document.createElement("entry");
        entry.setAttribute("name", FWCFG_NAME);
        entry.setAttribute("file", path);
        sysinfo.appendChild(entry);
    }

    /** The settings file that QEMU shows the guest; empty if there is none. */
    Optional<String> guestFile() {
        return children(root, "sysinfo").stream().filter(s -> s.getAttribute("type").equals("fwcfg"))
            .flatMap(s -> children(s, "entry").stream()).filter(e -> e.getAttribute("name").equals(FWCFG_NAME))
            .map(e -> e.getAttribute("file")).findFirst();
    }

    private Optional<Element> metadata(String namespace) {
        Element metadata = child(root, "metadata");
        for (Node node = metadata == null ? null : metadata.getFirstChild(); node != null;
            node = node.getNextSibling()) {
            if (node instanceof Element element && namespace.equals(element.getNamespaceURI())) {
                return Optional.of(element);
            }
        }
        return Optional.empty();
    }

    private static Map<String, String> attributes(Element element) {
        Map<String, String> attributes = new LinkedHashMap<>();
        NamedNodeMap all = element.getAttributes();
        for (int i = 0; i < all.getLength(); i++) {
            Node attribute = all.item(i);
            if (!XMLConstants.XMLNS_ATTRIBUTE_NS_URI.equals(attribute.getNamespaceURI())) {
                attributes.put(attribute.getNodeName(), attribute.getNodeValue());
            }
        }
        return attributes;
    }

    private static Element child(Element parent, String name) {
        List<Element> all = children(parent, name);
        return all.isEmpty() ? null : all.getFirst();
    }

    static List<Element> children(Element parent, String name) {
        List<Element> found = new ArrayList<>();
        for (Node node = parent == null ? null : parent.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element element && element.getNamespaceURI() == null
                && element.getNodeName().equals(name)) {
                found.add(element);
            }
        }
        return found;
    }

    private static String text(Element element) {
        return element == null ? "" : element.getTextContent().strip();
    }

    /** An element with attributes only, in the form that libvirt takes as metadata. libvirt adds the namespace. */
    public static String element(String local, Map<String, String> attributes) {
        StringBuilder text = new StringBuilder("<" + local);
        attributes.forEach((name, value) -> text.append(' ').append(name).append("=\"").append(escaped(value))
            .append('"'));
        return text.append("/>").toString();
    }

    private static String escaped(String text) {
        StringBuilder escaped = new StringBuilder();
        text.codePoints().forEach(c -> {
            switch (c) {
                case '<' -> escaped.append("&lt;");
                case '>' -> escaped.append("&gt;");
                case '&' -> escaped.append("&amp;");
                case '"' -> escaped.append("&quot;");
                // Replaces characters that XML cannot contain.
                default -> escaped.appendCodePoint(c < ' ' || c >= 0xd800 && c < 0xe000 || c == 0xfffe || c == 0xffff
                    || Character.isISOControl(c) ? '?' : c);
            }
        });
        return escaped.toString();
    }

    private static String printable(String text) {
        String one = text.codePoints().limit(200).map(c -> Character.isISOControl(c) ? ' ' : c)
            .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
        return one.strip();
    }
}
